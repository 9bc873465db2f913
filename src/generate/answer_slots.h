// The state of a batch of answers: jobs, the slots that work on them, finished answers.
#pragma once

#include <memory>
#include <vector>

#include "generate/beam_search.h"

namespace redco {

// One answer to compute: the `sample`-th answer to a prompt.
struct AnswerJob {
  i64 prompt, sample;
};

// A place in the batch: `width` rows of the model's input, one per beam.
struct AnswerSlot {
  i64 job = -1;  // -1: free
  i64 limit = 0, n_new = 0;
  std::vector<std::vector<i32>> ids;  // of each row: prompt and new tokens
  std::unique_ptr<BeamSearch> beams;  // on the first rank
  bool runs() const { return job >= 0; }
};

struct AnswerBatch {
  i64 width = 1;  // rows of a slot: the number of beams
  std::vector<AnswerJob> jobs;
  std::vector<AnswerSlot> slots;
  std::vector<std::vector<Answer>> answers;  // [prompt][sample]
  bool interrupted = false;
};

// A slot that waits for its next token. rows[b]: the row of the logits with the scores of beam b.
struct PendingSlot {
  i64 slot;
  std::vector<i64> rows;
};

// The first rank's decision for a slot; all ranks apply it.
struct Decision {
  std::vector<i32> tokens, sources;  // of each row: the new token, and the row whose tokens it continues
  bool done = false;
};

}  // namespace redco
