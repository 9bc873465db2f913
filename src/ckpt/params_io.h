// A ParamTree from and to Hugging Face files, whatever the mesh. Each rank touches its own part only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ckpt/model_files.h"
#include "ckpt/safetensors_write.h"
#include "nn/param_tree.h"

namespace redco::ckpt {

// Parameters that a checkpoint may lack, or hold in another shape: the head of a model that is to learn
// another task. Those are left as they are in `tree`.
struct HeadLoad {
  std::function<bool(const std::string& name)> is_head;
  std::vector<std::string> made;    // out: the tree's that weren't read
  std::vector<std::string> unused;  // out: the files' that the model has no place for
};

// Reads every parameter of `tree` from `files`. `canonical` maps a stored name to the specs' (legacy
// prefixes), "" skips it. Each mp shard is read 1/dp per replica and gathered over dp in row blocks of at
// most 16 MiB, so memory stays at the shard and one block. `prefix` goes before the stored names
// ("exp_avg/"). Collective. ContentsError: a parameter that is missing, a tensor the model has no place for,
// another shape than the config says. Not where it is one of `head`.
void load_params(ParamTree& tree, const ModelFiles& files,
                 const std::function<std::string(const std::string&)>& canonical,
                 const std::map<std::string, std::string>& aliases, const std::string& prefix = "",
                 HeadLoad* head = nullptr);

// The aliases (tied names, as load_params takes them) that the files hold beside the tensor they stand for,
// with another shape or other values. Reads both until they differ.
std::vector<std::string> stored_apart(const ModelFiles& files,
                                      const std::function<std::string(const std::string&)>& canonical,
                                      const std::map<std::string, std::string>& aliases);

// One set of values to be written under `prefix` + the stored names.
struct SavedTree {
  std::string prefix;
  const ParamTree* tree;
};
// The layout of the files, which depends on names, shapes and `type` alone. `stem`: model, optimizer.
ModelPlan plan_params(const std::vector<SavedTree>& trees, StoredType type, const std::string& stem,
                      i64 max_file_bytes = kDefaultFileBytes);
// Writes those files into `folder`. Files are dealt to ranks; each has one writer, to which the others stream
// their slices in blocks of at most 16 MiB; nobody gathers the model. Returns the names of the files this
// rank wrote. Collective; an error on one rank is thrown on all.
std::vector<std::string> save_params(const std::vector<SavedTree>& trees, const ModelPlan& plan,
                                     const std::string& folder);

}  // namespace redco::ckpt
