// What the model answers to evaluation examples: asked of Pipeline::predict(), kept in workdir/eval_outputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/pipeline.h"

namespace redco {

struct EvalOutputs {
  std::vector<std::string> lines;         // Pipeline::output() of each example, on the first rank
  std::map<std::string, double> metrics;  // Pipeline::output_metrics() of all; the same on every rank
};

// Asks predict() the first `n` examples, or all of them where the pipeline measures its outputs; `most`
// limits both, where the metrics mean nothing (-1: no limit). Batches of batch_size rows a replica.
// Collective.
EvalOutputs make_outputs(const Pipeline& pipeline, const ParamTree& params, const Dataset& data,
                         i64 batch_size, i64 n, i64 most = -1);

// "workdir/eval_outputs/step-00000020.jsonl"
std::string outputs_path(const std::string& workdir, i64 step);
// Writes the first n of them there, whole or not at all.
void save_outputs(const std::string& workdir, i64 step, const EvalOutputs& outputs, i64 n);
// The files of later steps, inside the workdir: "eval_outputs/step-00000040.jsonl".
std::vector<std::string> outputs_after(const std::string& workdir, i64 step);
// Removes those of evaluations that will be made again.
void remove_outputs_after(const std::string& workdir, i64 step);

// The texts of a few outputs, for people: a head, then a row each. Members that aren't texts are left out;
// long texts are cut.
std::vector<std::vector<std::string>> outputs_table(const EvalOutputs& outputs, std::size_t rows);

}  // namespace redco
