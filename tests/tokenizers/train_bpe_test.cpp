// BPE training: compares the merges with Hugging Face's trainer and with a plain form of the algorithm.
#include "tokenizers/train/train_bpe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "support/tokenizers.h"
#include "tokenizers/train/train_tokenizer.h"

namespace redco {
namespace {

using nlohmann::json;

std::string fixture(const std::string& name) {
  return std::string(REDCO_FIXTURES) + "/tokenizer-train/" + name;
}

TEST(TrainBpe, MergesIdsAndTokensOfHuggingFace) {
  std::ifstream in(fixture("expected.jsonl"));
  int cases = 0;
  for (std::string line; std::getline(in, line);) {
    const json c = json::parse(line);
    if (!c.contains("merges")) continue;
    ++cases;
    SCOPED_TRACE(fmt::format("{} {}", c["files"].dump(), c["vocab_size"].dump()));
    test::TempDir folder;
    TokenizerTraining o;
    o.output = folder.path();
    for (const auto& f : c["files"]) o.files.push_back(fixture(f.get<std::string>()));
    o.special = c["special"].get<std::vector<std::string>>();
    o.vocab_size = c["vocab_size"];
    o.min_frequency = c["min_frequency"];
    o.split = c["split"];
    const TrainedTokenizer made = train_tokenizer(o);
    const json model = json::parse(test::slurp(folder / "tokenizer.json"))["model"];
    EXPECT_EQ(model["merges"], c["merges"]);
    const auto tokens = c["tokens"].get<std::vector<std::string>>();
    const std::size_t before = o.special.size() + 256;
    EXPECT_EQ(static_cast<std::size_t>(made.vocab_size), before + tokens.size());
    EXPECT_EQ(model["vocab"].size(), before + tokens.size());
    for (std::size_t k = 0; k < o.special.size(); ++k) EXPECT_EQ(model["vocab"][o.special[k]], k);
    for (std::size_t k = 0; k < tokens.size(); ++k)
      EXPECT_EQ(model["vocab"][tokens[k]], before + k) << tokens[k];
    const auto t = load_tokenizer(folder.path());
    const std::string fresh = test::slurp(fixture("fresh.txt"));
    const auto ids = t->encode(fresh);
    EXPECT_EQ(ids, c["ids"].get<std::vector<i32>>());
    EXPECT_EQ(t->decode(ids), fresh);
  }
  EXPECT_EQ(cases, 5);
}

// The plain algorithm: count all pairs of all words before each merge.
std::vector<std::pair<std::string, std::string>> plain_merges(std::vector<std::vector<i32>> words,
                                                              const std::vector<u64>& counts,
                                                              std::vector<std::string> tokens, i32 vocab_size,
                                                              i64 min_frequency) {
  std::vector<std::pair<std::string, std::string>> out;
  while (static_cast<i32>(tokens.size()) < vocab_size) {
    std::map<std::pair<i32, i32>, i64> pairs;
    for (std::size_t w = 0; w < words.size(); ++w)
      for (std::size_t k = 0; k + 1 < words[w].size(); ++k)
        pairs[{words[w][k], words[w][k + 1]}] += static_cast<i64>(counts[w]);
    auto best = pairs.end();  // of the most frequent pairs, the one with the lowest ids
    for (auto it = pairs.begin(); it != pairs.end(); ++it)
      if (best == pairs.end() || it->second > best->second) best = it;
    if (best == pairs.end() || best->second < min_frequency) break;
    const auto [left, right] = best->first;
    const std::string joined =
        tokens[static_cast<std::size_t>(left)] + tokens[static_cast<std::size_t>(right)];
    out.emplace_back(tokens[static_cast<std::size_t>(left)], tokens[static_cast<std::size_t>(right)]);
    const auto id = static_cast<i32>(tokens.size());
    tokens.push_back(joined);
    for (auto& w : words)
      for (std::size_t k = 0; k + 1 < w.size(); ++k)
        if (w[k] == left && w[k + 1] == right) {
          w[k] = id;
          w.erase(w.begin() + static_cast<std::ptrdiff_t>(k) + 1);
        }
  }
  return out;
}

TEST(TrainBpe, EqualsThePlainAlgorithmOnRandomWords) {
  std::mt19937 r(5);
  for (int round = 0; round < 30; ++round) {
    // // The letters of a word are distinct. So no token is created in two ways and no pair overlaps itself,
    // cases that the
    // plain algorithm doesn't define.
    std::map<std::string, u64> counted;
    const unsigned letters = 4 + r() % 5;
    for (int k = 0; k < 60; ++k) {
      std::string word = std::string("abcdefgh").substr(0, letters);
      std::shuffle(word.begin(), word.end(), r);
      counted[word.substr(0, 1 + r() % letters)] += 1 + r() % 4;
    }
    WordCounts words;
    for (const auto& [word, n] : counted) {
      words.text += word;
      words.ends.push_back(words.text.size());
      words.counts.push_back(n);
    }
    BpeTraining o;
    o.vocab_size = 256 + 12;
    const LearnedBpe learned = learn_bpe(words, o);
    std::map<std::string, i32> ids;
    for (std::size_t k = 0; k < 256; ++k) ids[learned.tokens[k]] = static_cast<i32>(k);
    std::vector<std::vector<i32>> plain;
    for (const auto& [word, n] : counted) {
      plain.emplace_back();
      for (char c : word) plain.back().push_back(ids.at(std::string(1, c)));
    }
    const std::vector<std::string> alphabet(learned.tokens.begin(), learned.tokens.begin() + 256);
    auto expected = plain_merges(plain, words.counts, alphabet, o.vocab_size, o.min_frequency);
    // The comparison ends if a token is created a second time from another pair.
    std::map<std::string, int> made;
    std::size_t same = 0;
    while (same < expected.size() && made[expected[same].first + expected[same].second]++ == 0) ++same;
    ASSERT_GE(same, 3u);
    ASSERT_GE(learned.merges.size(), same);
    for (std::size_t k = 0; k < same; ++k) EXPECT_EQ(learned.merges[k], expected[k]) << k;
  }
}

}  // namespace
}  // namespace redco
