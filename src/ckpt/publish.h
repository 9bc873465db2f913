// The folder `workdir/checkpoints`: saving checkpoints such that a crash at any moment loses none, and
// finding them again.
//
//   step-00000020/       a whole checkpoint: a Hugging Face folder, and training/ with the manifest
//   last, best-rougeL    pointers: relative links, replaced in one step
//   .tmp-step-00000030/  being written; a leftover if nobody writes it
//   .trash-*, .old-*     being removed or replaced
//
// Files and names only: no tensors, no ranks. One process at a time (the first rank) calls what changes the
// folder; every rank may write files into the temporary folder between begin() and publish(), and may look.
//
// A save is: begin(step, bytes) -> each rank writes its files and records them -> publish() -> point() ->
// prune().
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"
#include "ckpt/manifest.h"

namespace redco::ckpt {

std::string step_name(i64 step);  // "step-00000020"
std::optional<i64> parse_step_name(const std::string& name);

class CheckpointFolder {
 public:
  explicit CheckpointFolder(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }

  // --- Saving ---

  // Where the files of a step's checkpoint are written until it is published.
  std::string temp_folder(i64 step) const;
  // Removes leftovers of saves that were killed, makes temp_folder(step) with its subfolder training/, and
  // returns it. IoError if the disk has less than `bytes` free; nothing is begun then.
  std::string begin(i64 step, i64 bytes);
  // Makes the temporary folder the step's checkpoint, in the place of an older one of the same step, and
  // returns its path. `records` are what the writers recorded; files in the folder that are not among them
  // are recorded here. Afterwards, as after a crash at any moment, the name holds the old whole checkpoint or
  // the new one. IoError if a file isn't as it was recorded.
  std::string publish(i64 step, const std::map<std::string, i64>& versions,
                      const std::vector<FileRecord>& records);
  // Gives up what begin() began.
  void abandon(i64 step);

  // From now on the pointer (e.g. "last", "best-rougeL") names this step. UsageError if it can't be a file's
  // name.
  void point(const std::string& pointer, i64 step);
  // Keeps the newest keep_last whole checkpoints, those that a pointer names, and what lies between them
  // damaged; removes all that are older. Returns the steps removed, in ascending order. REQUIRES: keep_last
  // >= 1.
  std::vector<i64> prune(i64 keep_last);
  // What a killed save or removal left; begin() calls it.
  void clean_up();

  // --- Finding ---

  struct PassedOver {
    std::string name;    // inside the folder
    std::string reason;  // "config.json has 12 bytes, the manifest says 700"
  };
  struct Found {
    i64 step = -1;  // -1: none
    std::string path;
    Manifest manifest;
    std::vector<PassedOver> passed_over;  // newer ones that are not whole, newest first, and unfinished saves
    explicit operator bool() const { return step >= 0; }
  };
  // The newest checkpoint whose files agree with its manifest in size and, with `hashes`, in contents. A
  // folder that doesn't exist holds none.
  Found find_newest_whole(bool hashes) const;

  // Every pointer that names a step.
  std::map<std::string, i64> pointers() const;
  // The checkpoint that a pointer names. UsageError: no such pointer (the message lists those there are);
  // ContentsError: the checkpoint it names is gone.
  std::string resolve(const std::string& pointer) const;
  // The steps there are, whole or not, in ascending order.
  std::vector<i64> steps() const;

 private:
  std::string in(const std::string& name) const;
  std::string locate(i64 step) const;  // "" if there is none
  std::string why_not_whole(const std::string& path, i64 step, bool hashes, Manifest* manifest) const;
  void discard(const std::string& name);
  std::string path_;
};

}  // namespace redco::ckpt
