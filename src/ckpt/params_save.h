// Writes the tensors of a job to Hugging Face files, on any mesh.
//
// The ranks hand the bytes over to the writers of the files: each byte is copied once, from the tensor into
// the writer's CopyQueue. Everything else (joining the parts of ranks, transposing, converting, hashing,
// writing) happens on the threads of the queue, which need neither tensors nor MPI.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ckpt/copy_queue.h"
#include "ckpt/safetensors_write.h"
#include "nn/param_tree.h"

namespace redco::ckpt {

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
// The copies of tensors in one save's files: the bytes of each file, and of the largest piece.
struct CopiedBytes {
  std::vector<i64> of_file;
  i64 largest_piece = 0;
};
CopiedBytes copied_bytes(const std::vector<SavedTree>& trees, const ModelPlan& plan);

// The files of this rank after all their bytes have been handed over to a CopyQueue.
class HandedFiles {
 public:
  HandedFiles();
  HandedFiles(HandedFiles&&) noexcept;
  HandedFiles& operator=(HandedFiles&&) = delete;
  // Drops what is not written yet, and waits for the thread of the queue.
  ~HandedFiles();
  // Waits until they are written, and makes them durable. Returns their records. Throws what the threads have
  // thrown. Any thread may call it, once, while no rank hands over to the queue.
  std::vector<FileRecord> finish();

 private:
  friend HandedFiles hand_over_params(const std::vector<SavedTree>&, const ModelPlan&, const std::string&,
                                      CopyQueue&, i64);
  struct Files;
  std::unique_ptr<Files> files_;
};
// Writes the files of a plan into `folder`, except what HandedFiles::finish() does: on return, the trees may
// change. File f has the writing rank writer_of(first_writer + f), to which the others send their rows in
// pieces of at most 4 MiB, or one row; no rank gathers the model. Collective; an error on one rank is thrown
// on all.
HandedFiles hand_over_params(const std::vector<SavedTree>& trees, const ModelPlan& plan,
                             const std::string& folder, CopyQueue& queue, i64 first_writer = 0);
// Both. Returns the records of the files that this rank wrote. Collective, as above.
std::vector<FileRecord> save_params(const std::vector<SavedTree>& trees, const ModelPlan& plan,
                                    const std::string& folder);

}  // namespace redco::ckpt
