// CheckpointSaver: the saves of a run, waited for or in the background.
//
//   begin()   copies the bytes of all tensors to the CopyQueues of the writing ranks; then training continues
//   (threads) lay the copy out in files, hash, write and sync them
//   finish()  publishes the checkpoint on the ranks' own threads, because only they call MPI
//
// A background save is begun after one step and published after a later one. The checkpoint becomes visible
// when it is complete, and the older ones are removed afterwards. At most one save is in flight.
#pragma once

#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/worker.h"
#include "ckpt/copy_queue.h"
#include "train/checkpoint.h"

namespace redco {

// Seconds from begin() until the publish, and of these, seconds in the saver's functions.
struct SaveTimes {
  double save_s = 0, stall_s = 0;
};

// All functions are collective and throw the same error on all ranks. The older checkpoints are then
// unchanged, and the step's temporary folder is gone. IoError also if the workdir was moved or removed.
class CheckpointSaver {
 public:
  // folder: workdir/checkpoints. `copy`: the memory of each rank for background saves (copy_sizes()); empty:
  // all saves are waited for.
  CheckpointSaver(std::string folder, i64 keep_last, const std::vector<ckpt::CopyQueue::Size>& copy = {});
  // Drops a save in flight, and waits for the threads.
  ~CheckpointSaver();
  CheckpointSaver(const CheckpointSaver&) = delete;
  CheckpointSaver& operator=(const CheckpointSaver&) = delete;

  // Begins the save of state.step; before, finishes the one in flight. On return, tensors may change. The
  // model and the tokenizers of `what` outlive the save. Waits for the disk only if the copy is smaller than
  // the tensors. Errors of the files are thrown by a later call.
  void begin(const CheckpointContents& what, const TrainState& state,
             const std::vector<std::string>& best_of);
  bool in_flight() const { return flight_.has_value(); }
  // Publishes the save in flight if all ranks have written their files.
  void poll();
  // Waits for the save in flight, if there is one, and publishes it: workdir/checkpoints/step-N, `last`, and
  // best-METRIC for each metric of begin(). A thread removes old checkpoints. Failures after the publish
  // (pointers, removals) are warnings.
  void finish();

  bool has_saved() const { return saved_; }  // a checkpoint was published
  bool copies() const { return copies_; }    // saves may be in the background
  i64 copy_bytes() const;                    // memory of the copy; 0: no background saves
  // Of the saves that were published since the last call. nullopt: none was.
  std::optional<SaveTimes> take_times();

 private:
  struct Flight {
    i64 step = 0;
    std::vector<std::string> best_of;
    ckpt::RunIdentity run;
    double began = 0, stall_s = 0;
    std::future<std::vector<ckpt::FileRecord>> files;  // of this rank
  };
  template <class F>
  void or_abandon(const ckpt::RunIdentity& run, i64 step, const F& f);
  void start(Flight& flight, const CheckpointContents& what, const TrainState& state);
  void publish(Flight& flight);
  void check_same_folder() const;

  std::string folder_;
  i64 keep_last_;
  bool copies_;
  std::optional<u64> inode_;  // of the workdir
  std::unique_ptr<ckpt::CopyQueue> queue_;
  std::optional<Flight> flight_;
  std::future<void> removal_;  // of old checkpoints; set on the first rank
  bool saved_ = false;
  std::optional<SaveTimes> times_;
  Worker worker_;  // the last member: its destructor waits for the work
};

}  // namespace redco
