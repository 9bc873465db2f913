// From a row of scores to the next token: transformers' logits processors and warpers, in the same order.
//
// Scores are logits, or log-probabilities in a beam search; T is float or double. Processors change single
// tokens, so they work on any part of the vocabulary. Warpers: generate/token_draw.h.
#pragma once

#include <span>
#include <vector>

#include "base/types.h"
#include "generate/generation_settings.h"

namespace redco {

// The state of an answer.
struct AnswerState {
  std::span<const i32> ids;  // the decoder's tokens so far, with the prompt, without padding
  i64 n_new = 0;             // number of generated tokens
  i64 limit = 0;             // largest number of generated tokens
};

// Whether process() would change anything in some state.
bool has_processors(const GenerationSettings& s, const GenerationTokens& t);

// Changes the scores of tokens [first, first + scores.size()): repetition penalty, no-repeat n-grams, no end
// token before min_new_tokens, suppressed tokens, order of times, forced first and last token.
template <class T>
void process(std::span<T> scores, i64 first, const AnswerState& at, const GenerationSettings& s,
             const GenerationTokens& t);

// The distribution that sampling draws from without processors, over the whole vocabulary.
std::vector<float> sampling_probabilities(std::span<const float> logits, const GenerationSettings& s);

// A token and its score.
struct ScoredToken {
  double score;
  i32 id;  // -1: none
};
// The k best tokens of a part of the vocabulary, best first, lower ids first among equal scores, without NaN.
// A shorter list is filled up with {-inf, -1}.
template <class T>
std::vector<ScoredToken> best_tokens(std::span<const T> scores, i64 first, i64 k);

}  // namespace redco
