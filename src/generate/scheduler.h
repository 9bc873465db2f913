// Which answers run in which rows of a batch. Knows no model and no cache.
//
// Every rank of the mp group makes the same calls and so has the same slots; beam searches are on the first
// rank only.
#pragma once

#include <span>
#include <vector>

#include "generate/answer_slots.h"
#include "generate/generate.h"

namespace redco {

// Answers that start. Row to[i] of the batch continues prompts[from[i]].
struct Start {
  std::vector<i64> prompts;  // each once
  std::vector<i64> from, to;
  i64 most_new = 0;    // the largest limit of new tokens
  bool alone = false;  // no other answer runs
  std::vector<PendingSlot> pending;
};

// One step of all running answers.
struct Step {
  std::vector<i32> ids;    // of each row of the batch: its last token
  std::vector<bool> live;  // rows of running answers
  std::vector<PendingSlot> pending;
};

// Rows that continue others: row r continues the former row source[r], and the two differ in the last
// `columns` columns only.
struct Forks {
  std::vector<i64> source;
  i64 columns = 0;
};

class Scheduler {
 public:
  // The arguments outlive the scheduler. length_limit: the longest sequence of the model.
  Scheduler(std::span<const GenerationPrompt> prompts, const GenerationSettings& settings,
            const GenerationTokens& tokens, i64 length_limit, i64 batch_size, bool first_rank);

  AnswerBatch& batch() { return batch_; }
  i64 rows() const { return static_cast<i64>(batch_.slots.size()) * batch_.width; }
  bool running() const { return n_running() > 0; }
  // Whether an answer is left to start and a slot is free.
  bool can_start() const { return jobs_left() && n_running() < static_cast<i64>(batch_.slots.size()); }

  // Starts the next answers in the free slots. REQUIRES: can_start().
  Start start();
  Step step() const;
  // Applies what was decided for pending[i], and frees the slots of answers that are done.
  Forks apply(const std::vector<PendingSlot>& pending, const std::vector<Decision>& decisions);
  // When no answer is left to start and at least half of the slots are free, removes the free slots. Returns
  // the rows that remain; none: nothing has changed.
  std::vector<i64> shrink();

 private:
  bool jobs_left() const { return next_job_ < static_cast<i64>(batch_.jobs.size()); }
  i64 n_running() const;

  std::span<const GenerationPrompt> prompts_;
  const GenerationSettings& s_;
  const GenerationTokens& t_;
  const i64 length_limit_;
  const bool first_rank_;
  AnswerBatch batch_;
  i64 next_job_ = 0;
};

}  // namespace redco
