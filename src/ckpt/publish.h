// The folder `workdir/checkpoints`: saving checkpoints such that a crash at any moment loses none, and
// finding them again.
//
//   step-00000020/       a whole checkpoint: a Hugging Face folder, and training/ with the manifest
//   last, best-rougeL    pointers: relative links, replaced in one step
//   .tmp-step-00000030/  being written; a leftover if nobody writes it
//   .trash-*, .old-*     being removed or replaced
//   .lease-step-*        somebody reads the step: it is not removed
//
// Files and names only: no tensors, no ranks. One process at a time (the first rank) calls what changes the
// folder; every rank may write files into the temporary folder between begin() and publish(), and may look.
//
// A save is: begin(step, bytes) -> each rank writes its files and records them -> publish() -> point() ->
// prune().
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/lease.h"
#include "base/types.h"
#include "ckpt/manifest.h"

namespace redco::ckpt {

std::string step_name(i64 step);  // "step-00000020"
std::optional<i64> parse_step_name(const std::string& name);

// Keeps prune() from removing a checkpoint that is being read, while it lives. Null where the folder is no
// step of a workdir, or this user can't write there: then nothing protects it.
std::unique_ptr<Lease> hold_checkpoint(const std::string& folder);

class CheckpointFolder {
 public:
  // With `run`: the folder as that run sees it. Checkpoints of other runs that it doesn't continue are
  // neither found nor pruned, and what is published carries its id and lineage. Without: all checkpoints.
  explicit CheckpointFolder(std::string path, std::optional<RunIdentity> run = std::nullopt)
      : path_(std::move(path)), run_(std::move(run)) {}
  const std::string& path() const { return path_; }

  // --- Saving ---

  // Where the files of a step's checkpoint are written until it is published.
  std::string temp_folder(i64 step) const;
  // Removes leftovers of saves that were killed, makes temp_folder(step) with its subfolder training/, and
  // returns it. IoError if the workdir is gone or the disk has less than `bytes` free; nothing is begun then.
  std::string begin(i64 step, i64 bytes);
  // Makes the temporary folder the step's checkpoint, in the place of an older one of the same step, and
  // returns its path. `records` are what the writers recorded; files in the folder that are not among them
  // are recorded here. Afterwards, as after a crash at any moment, the name holds the old whole checkpoint or
  // the new one. IoError if a file isn't as it was recorded. When the new one is in place, failures to remove
  // the old one are warnings.
  std::string publish(i64 step, const std::map<std::string, i64>& versions,
                      const std::vector<FileRecord>& records);
  // Gives up what begin() began.
  void abandon(i64 step);

  // From now on the pointer (e.g. "last", "best-rougeL") names this step. UsageError if it can't be a file's
  // name; IoError if the step's checkpoint is gone.
  void point(const std::string& pointer, i64 step);
  // Keeps the newest keep_last whole checkpoints, those that a pointer names, and what lies between them
  // damaged; removes all of the run that are older, unless somebody reads them (hold_checkpoint). Returns the
  // steps removed, in ascending order; one that can't be removed is a warning, and the next prune tries
  // again. REQUIRES: keep_last >= 1.
  std::vector<i64> prune(i64 keep_last);
  // Removes what a killed save or removal left; begin() calls it. What can't be removed is a warning.
  void clean_up();

  // --- Finding ---

  // A step's folder, judged by its manifest and the sizes of its files.
  struct Entry {
    enum Kind : std::uint8_t {
      whole,
      incomplete,  // no manifest, or a listed file is missing or short: a search may skip it
      broken,      // anything else: an I/O error, a newer format, a manifest that doesn't parse
    } kind = whole;
    i64 step = -1;
    std::string name, path;            // name: inside the folder
    std::string problem;               // "config.json has 12 bytes, the manifest says 700"; "" if whole
    ExitCode code = ExitCode::ok;      // of the error that `broken` stands for
    std::optional<Manifest> manifest;  // where it could be read
  };
  // All steps of the run, the newest first; those without a readable manifest are nobody's and among them.
  // Reads manifests and sizes, not contents (verify_checkpoint does).
  std::vector<Entry> survey() const;

  struct Skipped {
    std::string name;    // inside the folder
    std::string reason;  // "config.json has 12 bytes, the manifest says 700"
  };
  struct Found {
    i64 step = -1;  // -1: none
    std::string path;
    Manifest manifest;
    std::vector<Skipped> skipped;  // newer ones that are incomplete, newest first, and unfinished saves
    std::string newer;             // find_last: a newer whole one; "": none
    explicit operator bool() const { return step >= 0; }
  };
  // The newest whole checkpoint. Only unfinished saves and incomplete checkpoints are skipped. None: the
  // folder doesn't exist or holds no checkpoint, unfinished saves aside. Errors, whose messages name the
  // newest older whole checkpoint as a value of `setting` ("checkpoint.resume"): IoError or ContentsError
  // where one is broken; ContentsError where all are incomplete.
  Found find_newest(const std::string& setting) const;
  // The checkpoint that `last` names, whatever its run; find_newest() where there is no such pointer, or what
  // it names is missing or incomplete. Errors as find_newest's.
  Found find_last(const std::string& setting) const;
  // What to do about a bad checkpoint of this step: "; checkpoint.resume=PATH ...", the newest older whole
  // one, or that there is none.
  std::string remedy(i64 step, const std::string& setting) const;

  // Every pointer that names a step.
  std::map<std::string, i64> pointers() const;
  // The checkpoint that a pointer names. UsageError: no such pointer (the message lists those there are);
  // ContentsError: the checkpoint it names is gone.
  std::string resolve(const std::string& pointer) const;
  // The steps there are, of any run, whole or not, in ascending order.
  std::vector<i64> steps() const;

 private:
  std::string in(const std::string& name) const;
  std::string locate(i64 step) const;  // "" if there is none
  Entry inspect(i64 step) const;
  bool is_foreign(const Entry& e) const;
  bool is_leased(i64 step) const;
  void write_manifest(const std::string& temp, i64 step, const std::map<std::string, i64>& versions,
                      const std::vector<FileRecord>& records);
  void discard(const std::string& name);
  void remove_trash(const std::string& trash);
  void clean_up(const std::string& name);
  std::string path_;
  std::optional<RunIdentity> run_;
};

}  // namespace redco::ckpt
