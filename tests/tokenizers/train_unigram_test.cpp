// Unigram training: seeds compared with brute force, and the compression compared with Hugging Face's
// trainer.
#include "tokenizers/train/train_unigram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "support/tokenizers.h"
#include "tokenizers/train/train_seeds.h"
#include "tokenizers/train/train_tokenizer.h"

namespace redco {
namespace {

using nlohmann::json;

WordCounts counts_of(const std::map<std::string, u64>& words) {
  WordCounts out;
  for (const auto& [word, n] : words) {
    out.text += word;
    out.ends.push_back(out.text.size());
    out.counts.push_back(n);
  }
  return out;
}

std::map<std::string, u64> random_words(std::mt19937& r, int n, const char* letters) {
  const std::string all(letters);
  std::map<std::string, u64> out;
  for (int k = 0; k < n; ++k) {
    std::string word;
    for (unsigned length = 1 + r() % 9; word.size() < length;) word += all[r() % all.size()];
    out[word] += 1 + r() % 3;
  }
  return out;
}

UnigramTraining of_size(i64 n) {
  UnigramTraining o;
  o.n_pieces = n;
  return o;
}

TEST(TrainUnigram, SeedsAreTheSubstringsThatBranch) {
  std::mt19937 r(7);
  constexpr u32 kMax = 4;
  for (int round = 0; round < 40; ++round) {
    const auto words = random_words(r, 1 + round, round % 2 == 0 ? "ab" : "abcde");
    // Substring -> its count, and the set of its continuations: letters, or the end of a word.
    std::map<std::string, std::pair<u64, std::set<std::string>>> found;
    for (const auto& [word, n] : words)
      for (std::size_t i = 0; i < word.size(); ++i)
        for (std::size_t length = 2; length <= kMax && i + length <= word.size(); ++length) {
          auto& [count, next] = found[word.substr(i, length)];
          count += n;
          next.insert(i + length < word.size() ? word.substr(i + length, 1) : "end of " + word);
        }
    std::map<std::string, u64> expected;
    for (const auto& [text, f] : found) {
      const auto whole = words.find(text);
      if (f.second.size() > 1 || (whole != words.end() && whole->second > 1)) expected[text] = f.first;
    }
    const CharWords chars = char_words(counts_of(words), 1);
    for (int threads : {1, 3}) {
      std::map<std::string, u64> got;
      double before = INFINITY;
      for (const Seed& s : frequent_substrings(chars, kMax, 1'000'000, threads)) {
        std::string text;
        for (u32 k = 0; k < s.length; ++k)
          text += static_cast<char>(chars.alphabet[chars.chars[s.begin + k] - 1]);
        EXPECT_TRUE(got.emplace(text, s.count).second) << text;
        const double score = static_cast<double>(s.count) * s.length;
        EXPECT_LE(score, before);
        before = score;
      }
      EXPECT_EQ(got, expected);
    }
  }
}

TEST(TrainUnigram, ExpectedCountsUseAllSegmentations) {
  // "ab" occurs 3 times: as "ab" with probability P(ab), as "a b" with P(a) P(b). The digamma prior makes the
  // sum of the probabilities slightly less than 1. The longer piece wins if it is the only use of its
  // letters.
  const LearnedUnigram learned = learn_unigram(counts_of({{"ab", 30}, {"ac", 20}, {"a", 50}}), of_size(10));
  double sum = 0;
  std::map<std::string, double> score;
  for (const auto& [piece, s] : learned.pieces) {
    sum += std::exp(s);
    score[piece] = s;
  }
  EXPECT_EQ(score.size(), 5u);  // a, b, c, ab, ac
  EXPECT_GT(sum, 0.9);
  EXPECT_LT(sum, 1.0);
  EXPECT_GT(score["ab"], score["ac"]);
  EXPECT_GT(score["ab"], score["a"] + score["b"]);
  EXPECT_EQ(learned.n_tokens, 100u);
}

TEST(TrainUnigram, CompressesAtLeastAsWellAsHuggingFace) {
  std::ifstream in(std::string(REDCO_FIXTURES) + "/tokenizer-train/expected.jsonl");
  json c;
  for (std::string line; std::getline(in, line);) c = json::parse(line);  // keeps the last line
  ASSERT_TRUE(c.contains("n_tokens_fresh"));
  const std::string at = std::string(REDCO_FIXTURES) + "/tokenizer-train/";
  test::TempDir folder;
  TokenizerTraining o;
  o.files = {at + "words.txt"};
  o.output = folder.path();
  o.model = TokenizerTraining::Model::unigram;
  o.vocab_size = c["vocab_size"];
  o.min_frequency = 1;
  o.byte_fallback = false;
  train_tokenizer(o);
  const auto t = load_tokenizer(folder.path());
  EXPECT_EQ(t->vocab_size(), o.vocab_size);
  // A few percent of tolerance: pruning is a heuristic, and ties are broken differently.
  EXPECT_LT(t->encode(test::slurp(at + "words.txt")).size(), 1.03 * c["n_tokens"].get<double>());
  EXPECT_LT(t->encode(test::slurp(at + "fresh.txt")).size(), 1.05 * c["n_tokens_fresh"].get<double>());
}

TEST(TrainUnigram, LongWordsDontUnderflow) {
  // As a double, the probability of 5000 characters underflows to 0, and so would all counts.
  std::mt19937 r(9);
  std::string word;
  for (int k = 0; k < 5000; ++k) word += static_cast<char>('a' + r() % 26);
  const LearnedUnigram learned = learn_unigram(counts_of({{word, 1}, {"abc", 5}}), of_size(60));
  for (const auto& [piece, score] : learned.pieces) EXPECT_TRUE(std::isfinite(score)) << piece;
  EXPECT_GE(learned.pieces.size(), 27u);
}

}  // namespace
}  // namespace redco
