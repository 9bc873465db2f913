// Beam search over one prompt, step by step as transformers does it (GenerationMixin._beam_search): the
// bookkeeping of running and finished beams, without a model.
//
// A step takes the keep() best continuations of all beams. Those that end (end token, stop text, limit) and
// are among the num_beams best become finished answers, compared by score / length^length_penalty; the best
// others run on.
#pragma once

#include <span>
#include <vector>

#include "generate/generation_settings.h"
#include "generate/logits.h"

namespace redco {

enum class FinishReason : std::uint8_t { eos, stop, length, interrupted };
const char* name_of(FinishReason reason);

// One generated sequence.
struct Answer {
  std::vector<i32> ids;  // new tokens, the end token included
  FinishReason finish = FinishReason::length;
  double score = 0;  // of a beam: log-probability / length^length_penalty
};

class BeamSearch {
 public:
  // limit: most new tokens.
  BeamSearch(const GenerationSettings& s, const GenerationTokens& t, i64 limit);

  struct Candidate {
    double score;  // log-probability of the whole answer
    i32 beam, token;
  };
  // How many candidates a step takes, of all beams together.
  i64 keep() const { return keep_; }
  // Log-probability of a running beam; before the first step all but the first are out of the race.
  double score(i64 beam) const { return running_[beam].score; }
  const std::vector<i32>& ids(i64 beam) const { return running_[beam].ids; }

  // The best candidates, best first; stops[i]: candidate i ends with a stop text. Afterwards beam b goes on
  // from the former beam source(b) with its last id.
  void advance(std::span<const Candidate> best, const std::vector<bool>& stops);
  i32 source(i64 beam) const { return running_[beam].source; }
  bool done() const { return done_; }

  // The n best answers, best first. Not yet done: running beams fill them up.
  std::vector<Answer> best(i64 n) const;

 private:
  struct Running {
    std::vector<i32> ids;
    double score = 0;
    i32 source = 0;
  };
  struct Finished {
    Answer answer;
    double score;  // far below all others while it isn't an answer
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
