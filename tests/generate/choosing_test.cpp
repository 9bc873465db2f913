// Choosing tokens without a model: processors, warpers, sampling, beam search, stop texts.
#include <gtest/gtest.h>

#include <cmath>

#include "generate/beam_search.h"
#include "generate/sampling.h"
#include "generate/text_stream.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::Random;
constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Logits, ProcessorsWorkOnAnyPartOfTheVocabulary) {
  Random random(3);
  for (int round = 0; round < 50; ++round) {
    GenerationSettings s;
    GenerationTokens t{.eos = {2, 9}};
    if (round % 2) s.repetition_penalty = 1.5;
    s.no_repeat_ngram_size = random.below(4);
    s.min_new_tokens = random.below(6);
    if (round % 5 == 4) t.forced_bos = 4;
    if (round % 7 == 6) t.forced_eos = 9;
    std::vector<i32> ids(1 + random.below(12));
    for (i32& id : ids) id = static_cast<i32>(random.below(11));
    const AnswerState at{ids, random.below(8), 7};
    std::vector<double> whole = random.values(11, -3, 3), parts = whole;
    process(whole, 0, at, s, t);
    const i64 cut = random.below(12);
    process(std::span(parts).first(cut), 0, at, s, t);
    process(std::span(parts).subspan(cut), cut, at, s, t);
    EXPECT_EQ(whole, parts);
  }
}

TEST(Logits, NGramsAndPenaltiesMatchHandComputedScores) {
  GenerationSettings s;
  s.no_repeat_ngram_size = 3;
  const std::vector<i32> ids = {1, 2, 3, 1, 2, 0, 1, 2};
  std::vector<double> x(5, 1);
  process(x, 0, {ids, 3, 9}, s, {});
  EXPECT_EQ(x, (std::vector<double>{-kInf, 1, 1, -kInf, 1}));
  s = {};
  s.repetition_penalty = 2;
  x = {4, -4, 3, 0, 8};
  process(x, 0, {ids, 3, 9}, s, {});
  EXPECT_EQ(x, (std::vector<double>{2, -8, 1.5, 0, 8}));
}

TEST(Logits, WarpKeepsTiesAndAtLeastOneToken) {
  GenerationSettings s;
  s.temperature = 1e-300;
  EXPECT_EQ(warp(std::vector<double>{1, 3, 2}, s).ids, (std::vector<i32>{0, 1, 2}));
  EXPECT_EQ(warp(std::vector<double>{1, 3, 2}, s).probabilities, (std::vector<double>{0, 1, 0}));
  s.temperature = 1;
  s.top_k = 2;
  EXPECT_EQ(warp(std::vector<double>{1, 3, 2, 2}, s).ids, (std::vector<i32>{1, 2, 3}));
  s.top_k.reset();
  s.top_p = 1e-9;
  EXPECT_EQ(warp(std::vector<double>{1, 3, 3}, s).ids, (std::vector<i32>{1}));
  s.top_p = 1;
  s.min_p = 1;
  EXPECT_EQ(warp(std::vector<double>{1, 3, 3}, s).ids, (std::vector<i32>{1, 2}));
  EXPECT_TRUE(warp(std::vector<double>{-kInf, NAN}, s).ids.empty());
  EXPECT_EQ(warp(std::vector<double>{-kInf, 2, NAN}, s).ids, (std::vector<i32>{1}));
}

TEST(Logits, TopPOfALongRowEqualsAFullSort) {
  Random random(8);
  std::vector<double> x = random.values(5000, -4, 4);
  GenerationSettings s;
  s.temperature = 0.9;
  for (const double p : {0.01, 0.3, 0.77, 0.999}) {
    s.top_p = p;
    std::vector<double> w;
    for (const double v : x) w.push_back(std::exp(v / s.temperature));
    std::vector<double> sorted = w;
    std::sort(sorted.rbegin(), sorted.rend());
    double sum = 0, held = 0;
    for (const double v : sorted) sum += v;
    size_t n = 0;
    while (held < p * sum) held += sorted[n++];
    EXPECT_EQ(warp(x, s).ids.size(), n);
  }
}

TEST(Logits, DrawsFollowTheProbabilities) {
  const Choices c{{3, 5, 8}, {0.2, 0.5, 0.3}};
  EXPECT_EQ(draw(c, 0), 3);
  EXPECT_EQ(draw(c, 0.199), 3);
  EXPECT_EQ(draw(c, 0.2), 5);
  EXPECT_EQ(draw(c, 0.699), 5);
  EXPECT_EQ(draw(c, 0.9999999999999999), 8);
}

TEST(Logits, BestTokens) {
  const std::vector<float> x = {2, NAN, 5, 5, -INFINITY, 1};
  const auto best = best_tokens<float>(x, 10, 4);
  ASSERT_EQ(best.size(), 4u);
  EXPECT_EQ(best[0].id, 12);
  EXPECT_EQ(best[1].id, 13);
  EXPECT_EQ(best[2].id, 10);
  EXPECT_EQ(best[3].id, 15);
  EXPECT_EQ(best_tokens<float>(x, 0, 6)[5].id, -1);
  EXPECT_EQ(best_tokens<float>({}, 0, 1)[0].id, -1);
}

// Two beams over the tokens {0: end, 1, 2} with the same log-probabilities at each step.
std::vector<Answer> search(const std::string& early, double penalty, double end, i64 limit, i64* steps) {
  GenerationSettings s;
  s.num_beams = 2;
  s.length_penalty = penalty;
  s.early_stopping = early;
  BeamSearch b(s, {.eos = {0}}, limit);
  for (*steps = 0; !b.done(); ++*steps) {
    std::vector<BeamSearch::Candidate> all;
    const double p[] = {end, std::log(0.6), std::log(0.3)};
    for (i32 beam = 0; beam < 2; ++beam)
      for (i32 token = 0; token < 3; ++token) all.push_back({b.score(beam) + p[token], beam, token});
    std::stable_sort(all.begin(), all.end(), [](const auto& x, const auto& y) { return x.score > y.score; });
    all.resize(b.keep());
    b.advance(all, std::vector<bool>(all.size()));
  }
  return b.best(2);
}

TEST(BeamSearch, EarlyStoppingAndLengthPenalty) {
  i64 steps = 0;
  // A likely end token ends the search immediately: with a negative penalty no longer answer beats log(0.9)
  // / 1.
  auto best = search("true", 1, std::log(0.9), 8, &steps);
  EXPECT_EQ(best[0].ids, std::vector<i32>{0});
  EXPECT_EQ(best[0].finish, FinishReason::eos);
  EXPECT_DOUBLE_EQ(best[0].score, std::log(0.9));
  EXPECT_EQ(steps, 2);  // the second answer ends one step later
  // The end token is never among the best two: the limit ends all answers.
  best = search("false", 1, -50, 6, &steps);
  EXPECT_EQ(steps, 6);
  EXPECT_EQ(best[0].ids, std::vector<i32>(6, 1));
  EXPECT_EQ(best[0].finish, FinishReason::length);
  EXPECT_NEAR(best[0].score, std::log(0.6), 1e-12);
  EXPECT_GT(best[0].score, best[1].score);
  // "never" with a penalty that favours long answers searches up to the limit.
  search("never", 2, std::log(0.5), 8, &steps);
  EXPECT_EQ(steps, 8);
  i64 soon = 0;
  search("false", 0, std::log(0.5), 8, &soon);
  EXPECT_LT(soon, 8);
}

// Tokens are pieces of text.
const std::vector<std::string> kPieces = {"a",    "b",    "st", "op", "STOP", "\xE2",
                                          "\x82", "\xAC", " ",  "",   "topst"};
std::string decode(std::span<const i32> ids) {
  std::string bytes, out;
  for (const i32 id : ids) bytes += kPieces[id];
  for (size_t i = 0; i < bytes.size(); ++i) {  // the only character of several bytes is the euro sign
    if (bytes.compare(i, 3, "\xE2\x82\xAC") == 0) {
      out += "\xE2\x82\xAC";
      i += 2;
    } else if (static_cast<unsigned char>(bytes[i]) >= 0x80) {
      out += "\xEF\xBF\xBD";
      if (bytes.compare(i, 2, "\xE2\x82") == 0) ++i;
    } else {
      out += bytes[i];
    }
  }
  return out;
}

TEST(TextStream, PiecesJoinToTheTextCutAtAStopText) {
  Random random(4);
  for (int round = 0; round < 100; ++round) {
    const StopTexts stop(
        round % 3 ? std::vector<std::string>{"stop", "OP\xE2\x82\xAC"} : std::vector<std::string>{}, decode);
    TextStream stream(decode, stop);
    const i64 most = round % 20 == 0 ? 140 : 20;  // 140: more than the window of decoded tokens
    std::vector<i32> ids;
    std::string shown;
    bool ended = false;
    for (i64 n = 0; n < most && !ended; ++n) {
      // Long answers have few stop texts, so that they reach their length.
      ids.push_back(static_cast<i32>(
          most > 20 && random.below(8) ? random.below(2) : random.below(static_cast<i64>(kPieces.size()))));
      ended = stop.ends(ids);
      EXPECT_EQ(ended, stop.find(decode(ids)) != std::string::npos);
      shown += stream.push(ids, ended || n + 1 == most);
      EXPECT_TRUE(decode(ids).starts_with(shown) || shown == stop.cut(decode(ids)));
    }
    EXPECT_EQ(shown, stop.cut(decode(ids))) << round;
  }
}

TEST(TextStream, HoldsBackUnfinishedCharactersAndPartialStopTexts) {
  const StopTexts stop({"stop"}, decode);
  TextStream stream(decode, stop);
  EXPECT_EQ(stream.push(std::vector<i32>{0}, false), "a");
  EXPECT_EQ(stream.push(std::vector<i32>{0, 5}, false), "");
  EXPECT_EQ(stream.push(std::vector<i32>{0, 5, 6}, false), "");
  EXPECT_EQ(stream.push(std::vector<i32>{0, 5, 6, 7}, false), "\xE2\x82\xAC");
  EXPECT_EQ(stream.push(std::vector<i32>{0, 5, 6, 7, 2}, false), "");
  EXPECT_EQ(stream.push(std::vector<i32>{0, 5, 6, 7, 2, 1}, false), "stb");
  EXPECT_EQ(stream.push(std::vector<i32>{0, 5, 6, 7, 2, 1, 2}, false), "");
  EXPECT_EQ(stream.push(std::vector<i32>{0, 5, 6, 7, 2, 1, 2, 3}, true), "");
  EXPECT_EQ(stop.cut("b stop c"), "b ");
  EXPECT_EQ(stop.maybe("xsto"), 3u);
  EXPECT_EQ(stop.maybe("stopx"), 0u);
}

}  // namespace
}  // namespace redco
