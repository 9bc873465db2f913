// Choosing tokens without a model: processors, warpers, sampling, beam search, stop texts.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <mutex>

#include "generate/beam_search.h"
#include "generate/sampling.h"
#include "generate/text_stream.h"
#include "generate/token_draw.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
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
    process<double>(whole, 0, at, s, t);
    const i64 cut = random.below(12);
    process<double>(std::span(parts).first(cut), 0, at, s, t);
    process<double>(std::span(parts).subspan(cut), cut, at, s, t);
    EXPECT_EQ(whole, parts);
  }
}

TEST(Logits, NGramsAndPenaltiesMatchHandComputedScores) {
  GenerationSettings s;
  s.no_repeat_ngram_size = 3;
  const std::vector<i32> ids = {1, 2, 3, 1, 2, 0, 1, 2};
  std::vector<double> x(5, 1);
  process<double>(x, 0, {ids, 3, 9}, s, {});
  EXPECT_EQ(x, (std::vector<double>{-kInf, 1, 1, -kInf, 1}));
  s = {};
  s.repetition_penalty = 2;
  x = {4, -4, 3, 0, 8};
  process<double>(x, 0, {ids, 3, 9}, s, {});
  EXPECT_EQ(x, (std::vector<double>{2, -8, 1.5, 0, 8}));
}

// The slow twin of TokenDraw: transformers' warpers with a full sort of the whole row, in double precision.
std::vector<double> warped(const std::vector<double>& scores, const GenerationSettings& s) {
  const double temperature = s.draws() ? s.temperature : 1.0;
  std::vector<size_t> order;
  for (size_t i = 0; i < scores.size(); ++i)
    if (scores[i] > -kInf) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return scores[a] > scores[b]; });
  std::vector<double> p(scores.size(), 0);
  if (order.empty()) return p;
  const double top = scores[order[0]];
  const auto weight = [&](size_t i) {
    return scores[i] == top ? 1.0 : std::exp((scores[i] - top) / temperature);
  };
  if (s.top_k && *s.top_k < static_cast<i64>(order.size())) {
    const double least = scores[order[static_cast<size_t>(*s.top_k) - 1]];
    std::erase_if(order, [&](size_t i) { return scores[i] < least; });
  }
  if (s.top_p < 1) {
    double sum = 0, held = 0;
    for (const size_t i : order) sum += weight(i);
    size_t n = 0;
    while (n < order.size() && (n == 0 || held < s.top_p * sum)) held += weight(order[n++]);
    order.resize(n);
  }
  if (s.min_p > 0) std::erase_if(order, [&](size_t i) { return weight(i) < s.min_p; });
  double sum = 0;
  for (const size_t i : order) sum += weight(i);
  for (const size_t i : order) p[i] = weight(i) / sum;
  return p;
}

// The probabilities of rows whose vocabulary is cut over the ranks of a mesh, and draws from them.
template <class T>
struct Drawn {
  std::vector<std::vector<double>> probabilities;
  std::vector<i32> tokens;
};
template <class T>
Drawn<T> draw_on(int mp, const std::vector<std::vector<T>>& rows, const GenerationSettings& s,
                 const std::vector<double>& places) {
  Drawn<T> out;
  out.probabilities.assign(rows.size(), std::vector<double>(rows[0].size()));
  std::mutex mutex;
  on_mesh({1, mp}, [&](Context& c) {
    Group& g = c.group(Axis::mp);
    const size_t n = rows[0].size(), from = n * static_cast<size_t>(g.rank()) / static_cast<size_t>(mp),
                 to = n * static_cast<size_t>(g.rank() + 1) / static_cast<size_t>(mp);
    std::vector<std::vector<T>> mine;
    for (const auto& row : rows)
      mine.emplace_back(row.begin() + static_cast<i64>(from), row.begin() + static_cast<i64>(to));
    const std::vector<std::span<T>> spans(mine.begin(), mine.end());
    const TokenDraw<T> draw(g, mp > 1, spans, static_cast<i64>(from), s);
    const auto tokens = draw.draw(places);
    const std::lock_guard lock(mutex);
    if (g.rank() == 0) out.tokens = tokens;
    EXPECT_EQ(out.tokens.empty() ? tokens : out.tokens, tokens);
    for (size_t r = 0; r < rows.size(); ++r) {
      const auto p = draw.probabilities(r);
      std::copy(p.begin(), p.end(), out.probabilities[r].begin() + static_cast<i64>(from));
    }
  });
  return out;
}

std::vector<double> probabilities_of(std::vector<double> row, const GenerationSettings& s) {
  return draw_on<double>(1, {std::move(row)}, s, {0}).probabilities[0];
}
std::vector<i32> ids_of_choices(std::vector<double> row, const GenerationSettings& s) {
  std::vector<i32> out;
  const auto p = probabilities_of(std::move(row), s);
  for (size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) out.push_back(static_cast<i32>(i));
  return out;
}

TEST(TokenDraw, KeepsTiesAndAtLeastOneToken) {
  using Ids = std::vector<i32>;
  GenerationSettings s;
  s.temperature = 1e-300;
  EXPECT_EQ(probabilities_of({1, 3, 2}, s), (std::vector<double>{0, 1, 0}));
  s.temperature = 1;
  s.top_k = 2;
  EXPECT_EQ(ids_of_choices({1, 3, 2, 2}, s), (Ids{1, 2, 3}));
  s.top_k = 9;
  EXPECT_EQ(ids_of_choices({1, 3, -kInf, 2}, s), (Ids{0, 1, 3}));
  s.top_k.reset();
  s.top_p = 1e-9;
  EXPECT_EQ(ids_of_choices({1, 3, 3}, s), (Ids{1}));
  EXPECT_EQ(ids_of_choices({kInf, 3, kInf}, s), (Ids{0}));
  s.top_p = 1;
  EXPECT_EQ(ids_of_choices({kInf, 3, kInf}, s), (Ids{0, 2}));
  s.min_p = 1;
  EXPECT_EQ(ids_of_choices({1, 3, 3}, s), (Ids{1, 2}));
  EXPECT_EQ(draw_on<double>(1,
                            {{-kInf, NAN},
                             {
                                 -kInf,
                                 2,
                             }},
                            s, {0.5, 0.5})
                .tokens,
            (Ids{-1, 1}));
  EXPECT_EQ(ids_of_choices({-kInf, 2, NAN}, s), (Ids{1}));
}

// Rows of many kinds: spread, nearly flat, with ties, with forbidden tokens, with one far outlier, all equal.
template <class T>
std::vector<std::vector<T>> rows_of_many_kinds(size_t n) {
  Random random(8);
  std::vector<std::vector<T>> rows;
  for (int kind = 0; kind < 8; ++kind) {
    const std::vector<double> x = random.values(static_cast<i64>(n), -4, 4);
    std::vector<T>& row = rows.emplace_back(x.begin(), x.end());
    for (size_t i = 0; i < n; ++i) {
      T& v = row[i];
      if (kind == 1) v *= T(1e-3);
      if (kind == 2) v = std::round(v);
      if (kind == 3 && i % 3) v = static_cast<T>(-kInf);
      if (kind == 4) v = T(20) * v;
      if (kind == 5) v = T(1.5);
      if (kind == 6) v *= T(1e-30);
      if (kind == 7) v = std::round(T(8) * v) / 8;
    }
    if (kind == 4) row[n / 2] = T(1e30);
    if (kind == 7) row[n - 1] = static_cast<T>(NAN);
  }
  return rows;
}

template <class T>
void expect_the_slow_twin(double tolerance) {
  for (const size_t n : {5UL, 300UL, 9001UL}) {
    const auto rows = rows_of_many_kinds<T>(n);
    for (int kind = 0; kind < 9; ++kind) {
      GenerationSettings s;
      s.temperature = kind % 3 == 2 ? 0.6 : 1;
      if (kind % 3 == 1) s.top_k = kind == 1 ? 1 : 40;
      if (kind == 7) s.top_k = static_cast<i64>(n / 2);
      if (kind >= 3) s.top_p = std::array{0.9, 0.31, 0.99, 0.02, 0.7, 0.999}[kind - 3];
      if (kind == 2 || kind == 8) s.min_p = 0.03;
      std::vector<double> places;
      for (size_t r = 0; r < rows.size(); ++r) places.push_back(static_cast<double>(r) / 8 + 0.06);
      std::vector<i32> tokens;
      for (const int mp : {1, 2, 3}) {
        const auto got = draw_on<T>(mp, rows, s, places);
        for (size_t r = 0; r < rows.size(); ++r) {
          const auto want = warped({rows[r].begin(), rows[r].end()}, s);
          double held = 0, worst = 0;
          for (size_t i = 0; i < n; ++i) worst = std::max(worst, std::abs(want[i] - got.probabilities[r][i]));
          EXPECT_LE(worst, tolerance) << "row " << r << " n " << n << " kind " << kind << " mp " << mp;
          size_t i = 0;
          while (i + 1 < n && held + want[i] <= places[r]) held += want[i++];
          if (worst <= tolerance)
            EXPECT_EQ(got.tokens[r], static_cast<i32>(i)) << "row " << r << " n " << n << " kind " << kind;
        }
        if (mp > 1) EXPECT_EQ(got.tokens, tokens) << "mp " << mp;
        tokens = got.tokens;
      }
    }
  }
}
TEST(TokenDraw, EqualsAFullSortOnEveryMesh) { expect_the_slow_twin<double>(1e-12); }
TEST(TokenDraw, EqualsAFullSortOnEveryMeshInFloat) { expect_the_slow_twin<float>(1e-6); }

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
