// Chooses the next token of each pending slot: greedy, by sampling, or by beam search.
//
// Every rank of the mp group makes the same calls. The logits stay cut over the vocabulary: each rank offers
// the best tokens of its part, or takes part in a draw (TokenDraw), and the group's first rank decides.
#pragma once

#include <span>
#include <vector>

#include "generate/answer_slots.h"
#include "generate/generate.h"
#include "generate/local_scores.h"
#include "generate/sampling.h"

namespace redco {

class TokenChooser {
 public:
  // The arguments outlive the chooser.
  TokenChooser(std::span<const GenerationPrompt> prompts, const GenerationSettings& settings,
               const GenerationTokens& tokens, const GenerateOptions& options, Group& mp, AnswerBatch& batch)
      : prompts_(prompts),
        s_(settings),
        t_(tokens),
        o_(options),
        mp_(mp),
        first_(mp.rank() == 0),
        processors_(has_processors(settings, tokens)),
        batch_(batch) {}

  // Fills decisions[i] for pending[i] on the first rank, and stores answers that are done in the batch. False
  // on the first rank if a slot has no finite score.
  bool choose(const Tensor& logits, const std::vector<PendingSlot>& pending,
              std::vector<Decision>& decisions);

 private:
  AnswerState state(const AnswerSlot& s, i64 beam) const;
  std::vector<i64> processed(LocalScores& scores, const std::vector<PendingSlot>& pending) const;
  bool greedy(const Tensor& logits, const std::vector<PendingSlot>& pending, std::vector<Decision>& out);
  bool sample(const Tensor& logits, const std::vector<PendingSlot>& pending, std::vector<Decision>& out);
  void take(const PendingSlot& c, i32 token, Decision& d);
  bool search(const Tensor& logits, const std::vector<PendingSlot>& pending, std::vector<Decision>& out);
  static std::vector<i64> distinct(const PendingSlot& c);
  bool advance(const PendingSlot& c, const std::vector<ScoredToken>& offers, size_t offset, size_t n_rows,
               i64 keep, size_t stride, Decision& d);

  std::span<const GenerationPrompt> prompts_;
  const GenerationSettings& s_;
  const GenerationTokens& t_;
  const GenerateOptions& o_;
  Group& mp_;
  const bool first_, processors_;
  AnswerBatch& batch_;
};

}  // namespace redco
