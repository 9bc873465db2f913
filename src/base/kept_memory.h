// Named shared memory that outlives the ranks of a start: the buddy copies of fault.buddy lie in it.
//
//   /dev/shm/redco-kept-KEY.keeper   locked by the keeper of this host, which removes the rest at its end
//   /dev/shm/redco-kept-KEY.NAME     one block
//
// KEY: 64 bits of a hash of kept_key(). Only this user may open the files.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// In the environment of ranks: the key, where keepers run on all hosts of the job.
inline constexpr const char* kKeptVariable = "REDCO_KEPT_MEMORY";

// The key of a host's memory: that of the job, and the host's name, because containers may share /dev/shm.
std::string kept_key(const std::string& job, const std::string& host);

// A mapped block. Its bytes stay when the object ends.
class KeptBlock {
 public:
  // Makes the block, or extends it: all its bytes are reserved. New bytes are 0. Error(doesnt_fit): /dev/shm
  // has no room for them.
  static KeptBlock make(const std::string& key, const std::string& name, i64 bytes);
  // nullopt: the block does not exist, or cannot be mapped.
  static std::optional<KeptBlock> open(const std::string& key, const std::string& name);

  std::byte* data() const { return memory_.get(); }
  i64 bytes() const { return memory_ ? memory_.get_deleter().bytes : 0; }

 private:
  struct Unmap {
    i64 bytes = 0;
    void operator()(std::byte* p) const;
  };
  KeptBlock(std::byte* p, i64 bytes) : memory_(p, Unmap{bytes}) {}
  std::unique_ptr<std::byte, Unmap> memory_;
};

// The names of the blocks, sorted.
std::vector<std::string> kept_blocks(const std::string& key);
void remove_kept_block(const std::string& key, const std::string& name);
// Whether a keeper runs.
bool is_kept(const std::string& key);

// While it lives, the blocks of the key stay; its destructor removes them.
class Keeper {
 public:
  // Waits while a former keeper of the key has the lock; that one then leaves the blocks to this one. Removes
  // blocks of other keys whose keepers were killed. IoError: /dev/shm cannot be written.
  explicit Keeper(const std::string& key);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

 private:
  std::string key_;
  int fd_ = -1;
};

// Removes the blocks of this user whose keeper was killed.
void remove_unkept_blocks();

}  // namespace redco
