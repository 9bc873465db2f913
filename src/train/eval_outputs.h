// Answers to evaluation examples: made by Pipeline::predict(), saved in workdir/eval_outputs.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "ckpt/eval_files.h"
#include "pipeline/pipeline.h"
#include "pipeline/scored_texts.h"

namespace redco {

struct EvalOutputs {
  std::vector<std::string> lines;  // Pipeline::output() of each example; on the first rank
  // Pipeline::output_metrics() of all outputs, and metrics of plugins; the same on every rank.
  std::map<std::string, double> metrics;
  std::string details;  // Pipeline::output_details(); on the first rank; "": none
  std::string set;      // the evaluation set's name
};

// Calls predict() for the first `n` examples, or for all examples if the pipeline measures its outputs.
// `most` limits both; the metrics then have no meaning (-1: no limit). batch_size is in rows per replica.
// Collective.
EvalOutputs make_outputs(const Pipeline& pipeline, const ParamTree& params, const Dataset& data,
                         i64 batch_size, i64 n, i64 most = -1);

// The path of a file in workdir/eval_outputs.
std::string outputs_path(const std::string& workdir, const ckpt::EvalFile& file);
// Writes the first n outputs and the details. Each file is complete or absent.
void save_outputs(const std::string& workdir, i64 step, const EvalOutputs& outputs, i64 n);
// The files of later steps, relative to the workdir: "eval_outputs/step-00000040.jsonl".
std::vector<std::string> outputs_after(const std::string& workdir, i64 step);
// Removes the outputs of evaluations that the run will repeat.
void remove_outputs_after(const std::string& workdir, i64 step);

// The texts of a few outputs for display: a head row, then one row per output. Members that aren't texts, or
// are images, are omitted; long texts are cut.
std::vector<std::vector<std::string>> outputs_table(const EvalOutputs& outputs, std::size_t rows);

}  // namespace redco
