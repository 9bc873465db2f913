// From a row of scores to the next token: processors and warpers as transformers has them, in its order.
//
// Scores are logits, or log-probabilities in a beam search. Processors forbid or change single tokens, so
// they work on any part of the vocabulary; warpers need the whole row.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"
#include "generate/generation_settings.h"

namespace redco {

// Where an answer is.
struct AnswerState {
  std::span<const i32> ids;  // the decoder's tokens so far, prompt included, padding not
  i64 n_new = 0;             // how many of them were generated
  i64 limit = 0;             // how many may be
};

// Whether process() would change anything in some state.
bool has_processors(const GenerationSettings& s, const GenerationTokens& t);

// Changes the scores of tokens [first, first + scores.size()): repetition penalty, no-repeat n-grams, no end
// before min_new_tokens, forced first and last token.
void process(std::span<double> scores, i64 first, const AnswerState& at, const GenerationSettings& s,
             const GenerationTokens& t);

// Tokens that may be drawn, ids ascending, with their probabilities.
struct Choices {
  std::vector<i32> ids;
  std::vector<double> probabilities;
};
// Temperature (1 where it is 0), then top-k, top-p and min-p. Tokens as likely as the k-th stay; at least one
// token does. Empty where no score is above -inf.
Choices warp(std::span<const double> scores, const GenerationSettings& s);

// The token at u in [0, 1) of their cumulative probability. REQUIRES: there is one.
i32 draw(const Choices& c, double u);

// The distribution that sampling draws from, over the whole vocabulary, without processors.
std::vector<float> sampling_probabilities(std::span<const float> logits, const GenerationSettings& s);

// A token and its score.
struct ScoredToken {
  double score;
  i32 id;  // -1: none
};
// The k best of a part of the vocabulary, best first, lower ids first among equals; NaN is never among them.
// Fewer than k are filled up with {-inf, -1}.
template <class T>
std::vector<ScoredToken> best_tokens(std::span<const T> scores, i64 first, i64 k);

}  // namespace redco
