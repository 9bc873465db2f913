// Buddy checkpoints (fault.buddy): every few steps, the state of each rank is copied to the memory of two
// hosts, so that the next start of a training that lost a rank or a host continues from there.
//
// The part of a rank is one block of named shared memory (base/kept_memory.h): a header, the TrainState, and
// the rank's elements of all parameters without the frozen ones and of all optimizer state. Ranks with the
// same elements (replicas without sharded state) have the same block. A block is kept by the hosts of the
// first two such ranks; if all of them are on one host, the next host in the order of the ranks keeps it too,
// and gets it by a message that is on its way during the next steps. A job on one host has no other host.
//
// Two generations are kept, in turn. A generation is complete if each part is on some host that answers, with
// the run, the start and the step of the generation, and with the right checksum. So nothing has to be
// published, and a block that was being written or sent when the ranks ended does not count. Blocks of a
// former start of the run count as its checkpoints do (RunIdentity::holds()).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/kept_memory.h"
#include "ckpt/pages.h"
#include "comm/group.h"
#include "train/checkpoint.h"

namespace redco {

// Bytes of a rank's part, without its TrainState, on this mesh; of a planned step too.
i64 buddy_part_bytes(const CheckpointContents& what, const Mesh& mesh, int rank);
// Bytes of both generations of all blocks that the rank writes or receives. host_of[r]: the host of rank r.
i64 buddy_bytes(const CheckpointContents& what, const Mesh& mesh, int rank, const std::vector<int>& host_of);

// All functions are collective.
class BuddyCopies {
 public:
  // job: the key of the job's keepers (kKeptVariable). host: of this rank. `what`: the tensors of the step;
  // they live as long as this object.
  BuddyCopies(const std::string& job, const std::string& host, CheckpointContents what);

  // The newest complete generation of the run (given on the first rank) after a step; load() copies it to the
  // tensors. Logs what does not count, and why.
  std::optional<TrainState> find(const ckpt::RunIdentity& run, i64 newer_than);
  void load();

  // Once, when the start has its number (given on the first rank): removes all other blocks than those of
  // load(), and reserves memory. Error(doesnt_fit): a host has no room. false: a host has no keeper after
  // `keeper_seconds`, which this logs; then nothing may be saved.
  bool open(const ckpt::RunIdentity& run, double keeper_seconds = 20);
  // Copies the state. Returns when the tensors may change; messages to other hosts are still on their way.
  void save(const TrainState& state);
  // Waits for these messages: before the group ends.
  void finish();

 private:
  // Rank `at` keeps the part of rank `owner`.
  struct Keeps {
    int owner = 0, at = 0;
  };
  struct Listed;
  std::vector<Listed> list_all();
  std::optional<std::string> take(i64 start, i64 step, const std::vector<Listed>& all);
  KeptBlock& block(i64 slot, const Keeps& k);
  void remove_old() const;
  int first_rank_of(int host) const;
  bool is_first_of_host() const;

  std::string key_;
  CheckpointContents what_;
  std::vector<u64> parts_;  // the identity of each rank's part
  std::vector<int> host_of_;
  std::vector<std::string> hosts_;
  std::vector<Keeps> keeps_;
  std::string run_;  // its id
  i64 start_ = 0, generation_ = 0;
  i64 restored_start_ = 0, restored_step_ = -1;  // the generation that this start began with; 0: none
  std::map<std::string, KeptBlock> blocks_;
  std::vector<Started> on_their_way_;
  std::optional<KeptBlock> found_;
  ckpt::Pages received_{0};
};

}  // namespace redco
