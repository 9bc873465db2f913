// The folder `workdir/checkpoints`: saves checkpoints so that a crash at any moment loses none, and finds
// them.
//
//   step-00000020/       a complete checkpoint: a Hugging Face folder, and training/ with the manifest
//   last, best-rougeL    pointers: relative links, replaced atomically
//   .tmp-step-00000030/  a save in progress, or left by a killed save
//   .trash-*, .old-*     a checkpoint that is being removed or replaced
//   .lease-step-*        a process reads the step: it is not removed
//
// Handles files and names only: no tensors, no ranks. One process at a time (the first rank) calls the
// functions that change the folder. Between begin() and publish() every rank may write files into the
// temporary folder. Every rank may read.
//
// A save: begin(step, bytes) -> each rank writes its files and records them -> publish() -> point() ->
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

// While it lives, prune() does not remove the checkpoint. Null if the folder is not a step of a workdir, or
// if this user can't write there: then the checkpoint is not protected.
std::unique_ptr<Lease> hold_checkpoint(const std::string& folder);

class CheckpointFolder {
 public:
  // With `run`: only the checkpoints of this run and of the runs it continues are found and pruned, and
  // published checkpoints get its id and lineage. Without: all checkpoints.
  explicit CheckpointFolder(std::string path, std::optional<RunIdentity> run = std::nullopt)
      : path_(std::move(path)), run_(std::move(run)) {}
  const std::string& path() const { return path_; }

  // --- Saving ---

  // Folder for the files of a step's checkpoint until it is published.
  std::string temp_folder(i64 step) const;
  // Removes leftovers of killed saves, creates temp_folder(step) with its subfolder training/, and returns
  // it. IoError, without any change, if the workdir is gone or the disk has less than `bytes` free.
  std::string begin(i64 step, i64 bytes);
  // Publishes the temporary folder as the step's checkpoint, replaces an older one of the same step, and
  // returns its path. `records` come from the writers; other files in the folder are recorded here.
  // Afterwards, and after a crash at any moment, the name is either the complete old checkpoint or the
  // complete new one. IoError if a file differs from its record. After the new checkpoint is in place, a
  // failed removal of the old one is a warning.
  std::string publish(i64 step, const std::map<std::string, i64>& versions,
                      const std::vector<FileRecord>& records);
  // Cancels the save that begin() started.
  void abandon(i64 step);

  // Sets the pointer (e.g. "last", "best-rougeL") to this step. UsageError if the name can't be a file name;
  // IoError if the step's checkpoint is gone.
  void point(const std::string& pointer, i64 step);
  // Keeps the newest keep_last complete checkpoints, those with a pointer, and damaged ones between them.
  // Removes all older ones of the run, unless a process reads them (hold_checkpoint). Returns the removed
  // steps in ascending order. A failed removal is a warning; the next prune() tries again. REQUIRES:
  // keep_last >= 1.
  std::vector<i64> prune(i64 keep_last);
  // Removes leftovers of killed saves and removals; begin() calls it. A failed removal is a warning.
  void clean_up();

  // --- Finding ---

  // A step's folder, with its state according to the manifest and the file sizes.
  struct Entry {
    enum Kind : std::uint8_t {
      whole,
      incomplete,  // no manifest, or a listed file is missing or short; a search may skip it
      broken,      // anything else: an I/O error, a newer format, an invalid manifest
    } kind = whole;
    i64 step = -1;
    std::string name, path;            // name: relative to the folder
    std::string problem;               // "config.json has 12 bytes, the manifest says 700"; "" if complete
    ExitCode code = ExitCode::ok;      // exit code of a `broken` entry's error
    std::optional<Manifest> manifest;  // if it was readable
  };
  // All steps of the run, the newest first, including those without a readable manifest, whose run is
  // unknown. Reads manifests and sizes, not contents (verify_checkpoint does).
  std::vector<Entry> survey() const;

  struct Skipped {
    std::string name;    // relative to the folder
    std::string reason;  // "config.json has 12 bytes, the manifest says 700"
  };
  struct Found {
    i64 step = -1;  // -1: none
    std::string path;
    Manifest manifest;
    std::vector<Skipped> skipped;  // newer incomplete checkpoints, newest first, and unfinished saves
    std::string newer;             // find_last: a newer complete one; "": none
    explicit operator bool() const { return step >= 0; }
  };
  // The newest complete checkpoint. Skips only unfinished saves and incomplete checkpoints. None if the
  // folder doesn't exist or has no checkpoints except unfinished saves. Errors name the newest older complete
  // checkpoint as a value of `setting` ("checkpoint.resume"): IoError or ContentsError if a checkpoint is
  // broken; ContentsError if all are incomplete.
  Found find_newest(const std::string& setting) const;
  // The checkpoint of the pointer `last`, of any run. Same as find_newest() if the pointer doesn't exist, or
  // its checkpoint is missing or incomplete. Errors as find_newest().
  Found find_last(const std::string& setting) const;
  // Advice about a bad checkpoint of this step: "; checkpoint.resume=PATH ..." with the newest older complete
  // one, or that there is none.
  std::string remedy(i64 step, const std::string& setting) const;

  // Every pointer to a step.
  std::map<std::string, i64> pointers() const;
  // The checkpoint of a pointer. UsageError: no such pointer (the message lists the existing ones);
  // ContentsError: its checkpoint is gone.
  std::string resolve(const std::string& pointer) const;
  // The existing steps of all runs, complete or not, in ascending order.
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
