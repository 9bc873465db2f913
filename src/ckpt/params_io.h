// Reads and writes a ParamTree from and to Hugging Face files, on any mesh. Each rank handles only its own
// part.
#pragma once

#include <functional>
#include <list>
#include <map>
#include <string>
#include <vector>

#include "ckpt/model_files.h"
#include "ckpt/safetensors_write.h"
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
// missing parameter, a tensor without a parameter, a shape that differs from the config. Parameters in `head`
// are exempt.
void load_params(ParamTree& tree, const ModelFiles& files,
                 const std::function<std::string(const std::string&)>& canonical,
                 const std::map<std::string, std::string>& aliases, const std::string& prefix = "",
                 HeadLoad* head = nullptr);

// The aliases (tied names, as in load_params) that the files store in addition to the original tensor, with
// another shape or other values. Reads both until they differ.
std::vector<std::string> stored_apart(const ModelFiles& files,
                                      const std::function<std::string(const std::string&)>& canonical,
                                      const std::map<std::string, std::string>& aliases);

// One set of values to write under `prefix` + the stored names.
struct SavedTree {
  std::string prefix;
  const ParamTree* tree;
};
// The layout of the files; it depends only on names, shapes and `type`. `stem`: model, optimizer.
ModelPlan plan_params(const std::vector<SavedTree>& trees, StoredType type, const std::string& stem,
                      i64 max_file_bytes = kDefaultFileBytes);
// The rank that writes file `file`: files are assigned in turn, so that ranks and hosts share the work.
int writer_of(i64 file, int ranks);

// The files of this rank after all their bytes have been handed over to a WriteQueue.
class HandedFiles {
 public:
  // Waits until they are written, and makes them durable. Returns their records. Any thread may call it,
  // once.
  std::vector<FileRecord> finish();

 private:
  friend HandedFiles hand_over_params(const std::vector<SavedTree>&, const ModelPlan&, const std::string&,
                                      WriteQueue&, i64);
  std::list<SafetensorsWriter> writers_;
  std::string folder_, index_name_, index_json_;
};
// Writes the files of a plan into `folder`, except what HandedFiles::finish() does: on return, the trees may
// change. File f has the writing rank writer_of(first_writer + f), to which the others send their slices in
// blocks of at most 4 MiB; no rank gathers the model. Collective; an error on one rank is thrown on all.
HandedFiles hand_over_params(const std::vector<SavedTree>& trees, const ModelPlan& plan,
                             const std::string& folder, WriteQueue& queue, i64 first_writer = 0);
// Both at once. Returns the records of the files that this rank wrote. Collective, as above.
std::vector<FileRecord> save_params(const std::vector<SavedTree>& trees, const ModelPlan& plan,
                                    const std::string& folder);

}  // namespace redco::ckpt
