// The tensor files of a checkpoint: which parameters they hold, in which folders.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ckpt/params_save.h"
#include "train/checkpoint.h"
#include "train/step.h"
#include "train/train_settings.h"

namespace redco {

// What is saved besides the job's model: the folder, and the parameters by the names in its files.
struct SavedPart {
  std::string folder;  // in the checkpoint: "models/extra"
  ParamTree tree;
  const NamedModel* model;  // null: the pipeline's own parameters
};
std::vector<SavedPart> parts_of(const CheckpointContents& what);
// The pipeline's own parameters by their folders in a model's folder. A parameter DIR/NAME is NAME in the
// files of DIR (a module of sentence-transformers), others are in models/extra.
std::vector<SavedPart> own_parts(const ParamTree& extra);

// Prefix of the fp32 values of weights that the model's files have rounded.
constexpr const char* kMaster = "master/";

// The tensors that a training saves, without the texts; of a planned step, too.
CheckpointContents saved_tensors(const Pipeline& pipeline, const TrainStep& step,
                                 const CheckpointSettings& settings, const std::string& adapter_config);

// Files of one folder: trees of values, and where their tensors are.
struct SavedFiles {
  std::string folder;                                    // in the checkpoint; "": the checkpoint itself
  std::vector<std::pair<std::string, ParamTree>> trees;  // with the prefixes of their names
  ckpt::ModelPlan plan;
  i64 first_writer = 0;  // see hand_over_params()
  std::vector<ckpt::SavedTree> saved() const;
};
// The same on all ranks, and on planned ones.
std::vector<SavedFiles> saved_files(const CheckpointContents& what);

// The memory of each rank for a background save: a copy of all tensors in the files that the rank writes, or
// as much of it as async_buffer_mib allows, and windows of these files. One piece always fits.
std::vector<ckpt::CopyQueue::Size> copy_sizes(const CheckpointContents& what,
                                              const CheckpointSettings& settings, int ranks);

}  // namespace redco
