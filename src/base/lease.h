// Leases and locks show who uses something on a disk that several hosts share.
//
// A lease is a file. A thread of the holder renews its modification time, so the lease of a dead holder
// becomes stale. Times are compared with the time of a file created at that moment on the same file system,
// never with the local clock, because a file server has its own clock. A lock is a lease plus a lock of the
// operating system (fcntl, which NFS forwards to other hosts): where the operating system knows the holder,
// no waiting is needed.
#pragma once

#include <memory>
#include <string>

#include "base/error.h"
#include "base/types.h"

namespace redco {

// Variable of the environment: "KEY N", the N-th start of a job whose supervisor has this key. A lock that a
// former start of the same job still holds is waited for (at most LeaseTimes::stale) and then taken over.
constexpr const char* kStartOfJob = "REDCO_START";

struct LeaseTimes {
  double heartbeat = 5;  // seconds between two renewals
  double stale = 60;     // seconds without renewal after which a lease has no holder
  double takeover = 20;  // the same for the lease of a lock that a process on another host held
};
// The times of this process. Only tests change them, before any lease is held.
LeaseTimes& lease_times();

class Lease {
 public:
  // Creates the file or takes over a stale one, and renews it. The destructor removes the file. Null if the
  // file cannot be created, for example by a reader without write permission.
  static std::unique_ptr<Lease> hold(const std::string& path);
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;

 private:
  friend class FileLock;
  class Renewal;
  Lease(std::string path, int fd);
  std::string path_;
  std::unique_ptr<Renewal> renewal_;
};

// The holder of a lease ("process 17 on node1"); "" if there is no lease or it is stale. If this cannot be
// determined, the lease counts as held.
std::string lease_holder(const std::string& path);

// Holds `path` exclusively during its lifetime; the operating system releases the lock when the process ends.
// First it tries the operating system's lock: if another process of this host holds it, that is an error
// immediately. Then it checks the lease PATH.lease. A lock that a process of another host holds counts until
// its lease is stale: a file server keeps the locks of a host that has died. If the lease belongs to another
// host, its holder may have a lock that does not cross hosts, so the lease is watched for up to
// LeaseTimes::takeover seconds. There is no wait after a holder that ended normally (it removed its lease) or
// one on this host (the lock is enough).
class FileLock {
 public:
  enum Rest : std::uint8_t { keeps, removes };  // whether the file stays after the lock ends
  // UsageError: "WHAT is in use by process 17 on node1; ADVICE". IoError: the file cannot be created.
  FileLock(std::string path, const std::string& what, const std::string& advice, Rest rest);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  // The operating system's lock: held by this object; by a holder on another host, which may have died; or
  // not known, because this file system has no locks.
  enum class Locked : std::uint8_t { here, elsewhere, unknown };
  Locked lock();
  UsageError in_use() const;
  bool is_of_this_host() const;  // whether a process of this host has written the lock's file
  void wait_for_lease(Locked locked);
  void replace_file();
  std::string path_, what_, advice_;
  Rest rest_;
  int fd_ = -1;
  std::unique_ptr<Lease> lease_;
};

// The current holder of a file's lock; "" if there is none or it cannot be determined.
std::string lock_holder(const std::string& path);

}  // namespace redco
