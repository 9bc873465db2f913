// Reads a ParamTree from Hugging Face files, on any mesh. Each rank handles only its own part.
// params_save.h writes one.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ckpt/grown_rows.h"
#include "ckpt/importance.h"
#include "ckpt/model_files.h"
#include "nn/param_tree.h"

namespace redco::ckpt {

// Parameters that a checkpoint may lack, or have in another shape: the head of a model for a new task. Their
// values in `tree` don't change.
struct HeadLoad {
  std::function<bool(const std::string& name)> is_head;
  std::vector<std::string> made;    // out: parameters of the tree that were not read
  std::vector<std::string> unused;  // out: tensors of the files without a parameter in the model
};

// Reads every parameter of `tree` from `files`. `canonical` maps a stored name to the specs' name (legacy
// prefixes); "" skips the tensor. Each replica reads 1/dp of each mp shard; the parts are gathered over dp in
// row blocks of at most 16 MiB. Each thread of a rank's kernels reads a block, so memory is limited to the
// shard and a block per thread. `prefix` precedes the stored names ("exp_avg/"). Collective. ContentsError: a
// missing parameter, a tensor without a parameter, a shape that differs from the config; one error names all
// of them. Parameters in `head` are exempt. `more`: rows of vocabulary tables that the files may lack; they
// become the mean of the others. `importances`: of columns of parameters in q4, which are then quantized with
// them; null: none. A planned rank makes the same checks from the headers of the files and reads no value.
void load_params(ParamTree& tree, const ModelFiles& files,
                 const std::function<std::string(const std::string&)>& canonical,
                 const std::map<std::string, std::string>& aliases, const std::string& prefix = "",
                 HeadLoad* head = nullptr, const MoreRows& more = {},
                 const Importances* importances = nullptr);

// Where files differ from a tree of parameters that are stored by their own names.
struct StoredDifferences {
  std::vector<std::string> missing, unknown;  // only in the tree, only in the files
  std::vector<std::string> reshaped;          // "v_head.weight: (1, 32) in FILE, (2, 32) in the job"
};
StoredDifferences stored_differences(const ParamTree& tree, const ModelFiles& files);

// The aliases (tied names, as in load_params) that the files store in addition to the original tensor, with
// another shape or other values. Reads both until they differ.
std::vector<std::string> stored_apart(const ModelFiles& files,
                                      const std::function<std::string(const std::string&)>& canonical,
                                      const std::map<std::string, std::string>& aliases);

}  // namespace redco::ckpt
