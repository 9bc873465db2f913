// Beam search for one prompt, with the same steps as transformers' GenerationMixin._beam_search: the lists of
// running and finished beams, without a model.
//
// A step takes the keep() best continuations of all beams. A continuation that ends (end token, stop text,
// limit) and is among the num_beams best becomes a finished answer, ranked by score / length^length_penalty.
// The best of the others become the running beams.
#pragma once

#include <span>
#include <vector>

#include "generate/generation_settings.h"
#include "generate/sampling.h"

namespace redco {

enum class FinishReason : std::uint8_t { eos, stop, length, interrupted };
const char* name_of(FinishReason reason);

// One generated sequence.
struct Answer {
  std::vector<i32> ids;  // new tokens, the end token included
  FinishReason finish = FinishReason::length;
  double score = 0;  // beam search only: log-probability / length^length_penalty
};

class BeamSearch {
 public:
  // limit: largest number of new tokens.
  BeamSearch(const GenerationSettings& s, const GenerationTokens& t, i64 limit);

  struct Candidate {
    double score;  // log-probability of the whole answer
    i32 beam, token;
  };
  // The number of candidates of a step, over all beams.
  i64 keep() const { return keep_; }
  // Log-probability of a running beam. Before the first step all beams but the first have a score of -1e9.
  double score(i64 beam) const { return running_[beam].score; }
  const std::vector<i32>& ids(i64 beam) const { return running_[beam].ids; }

  // The best candidates, best first; stops[i]: candidate i ends with a stop text. Afterwards beam b continues
  // the former beam source(b) with its last id.
  void advance(std::span<const Candidate> best, const std::vector<bool>& stops);
  i32 source(i64 beam) const { return running_[beam].source; }
  bool done() const { return done_; }

  // The n best answers, best first. Before done(), running beams complete the list.
  std::vector<Answer> best(i64 n) const;

 private:
  struct Running {
    std::vector<i32> ids;
    double score = 0;
    i32 source = 0;
  };
  struct Finished {
    Answer answer;
    double score;  // far below all others while this beam has no answer
    bool is_answer = false;
  };
  double penalized(double score, i64 length) const;

  i64 beams_, keep_, limit_;
  double length_penalty_;
  std::string early_stopping_;
  std::vector<i32> eos_;
  std::vector<Running> running_;
  std::vector<Finished> finished_;  // best first
  bool can_improve_ = true, done_ = false;
};

}  // namespace redco
