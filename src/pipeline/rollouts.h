// Rollouts: answers that the model itself gives, with their log-probabilities, for algorithms that learn from
// them (GRPO, online DPO).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "generate/generation_settings.h"
#include "pipeline/pipeline.h"

namespace redco {

struct Rollout {
  std::vector<i32> ids;          // the new tokens; the end token too if the model ended the answer
  std::string text;              // without special tokens
  std::vector<float> log_probs;  // of each new token, under the distribution of the model (temperature 1)
  std::string finish_reason;     // "eos", "length", "stop"
};

// num_return_sequences answers to each prompt, in order. The prompts are spread over the replicas; all ranks
// get all answers. Draws are keyed by (generation.settings.seed, first_ordinal + index of the prompt, sample,
// position): give another first_ordinal in each epoch, for example the number of prompts so far. The answers
// are the same on every rank, and in every run with equal model shards and threads. Nothing is recorded on
// the tape. Collective: call it in source().
std::vector<std::vector<Rollout>> sample(const Pipeline& pipeline, const ParamTree& params,
                                         std::span<const std::vector<i32>> prompts,
                                         const TextGeneration& generation, i64 first_ordinal = 0);

// What sample() allocates, on a meta context: `rows` answers of a replica together, with prompts of `prompt`
// tokens and `length` tokens of prompt and answer. REQUIRES: a decoder, 1 <= prompt < length.
void trace_sample(const Model& model, const ParamTree& params, i64 rows, i64 prompt, i64 length);

// A number for each example, in order and the same on every rank: rewards of answers by a frozen model.
// `score` returns [rows] of examples on one replica, at most batch_size; the length of `shape` is that of
// their longest field of ids. Nothing is recorded on the tape. Collective: call it in source().
using Score =
    std::function<Tensor(const ParamTree& params, std::span<const Example> rows, const BatchShape& shape)>;
std::vector<float> score_examples(const ParamTree& params, std::span<const Example> examples, i64 batch_size,
                                  const Score& score);

// [width][n] numbers, the same on every rank: f gives [width][share] of the items whose indices it gets. It
// runs on one rank of each replica; what it throws is thrown on all ranks. REQUIRES: no collective in f.
// Collective.
using ScoreShare = std::function<std::vector<std::vector<double>>(const std::vector<i64>& share)>;
std::vector<std::vector<double>> score_shares(i64 n, i64 width, const ScoreShare& f);

// Examples [first, first + n) of an endless sequence that visits all of `data`, in a random order, before it
// repeats one. Every call gives the same. Another stream has another order.
std::vector<Example> endless_examples(const Dataset& data, i64 first, i64 n, u64 stream = 0);

// A data set's fingerprint without the digest of the examples that one epoch made (EpochExamples): what all
// epochs share. A run that resumes inside of an epoch must have its examples, one that begins an epoch makes
// others than the checkpoint's.
inline constexpr std::string_view kEpochDigest = ", this epoch ";  // before the 16 digits of that digest
std::string without_epoch_digest(const std::string& fingerprint);

// The examples that an epoch made from its first parameters. They can't be made again when a run resumes
// inside the epoch, so a pipeline passes source(), notes(), state() and restore() on to this object.
class EpochExamples {
 public:
  struct Made {
    std::vector<Example> examples;
    std::map<std::string, double> notes;
  };
  // `passes` passes through the examples of this epoch, each in another order, or without `shuffle` in that
  // of make(). Calls make() if the object has those of another epoch. name: of the pipeline, for the
  // fingerprint.
  std::shared_ptr<const Dataset> source(const StepContext& ctx, const std::string& name, i64 passes,
                                        const std::function<Made()>& make, bool shuffle = true);
  const std::map<std::string, double>& notes() const { return made_.notes; }
  std::string state() const;
  void restore(const std::string& json);

 private:
  i64 epoch_ = -1;
  Made made_;
  u64 digest_ = 0;  // of the examples: a resumed run that makes others instead of restore() is an error
};

}  // namespace redco
