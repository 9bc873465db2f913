// Who uses something on a disk that several hosts share: leases and locks.
//
// A lease is a file whose time a thread of its holder renews; a lease whose holder died stops being renewed.
// Times are compared with that of a file made at that moment on the same file system, never with the local
// clock: a file server has its own. A lock is a lease plus a lock of the system (fcntl's, which NFS carries
// to other hosts), so that what the system knows is known at once and needs no waiting.
#pragma once

#include <memory>
#include <string>

namespace redco {

struct LeaseTimes {
  double heartbeat = 5;  // seconds between two renewals
  double stale = 60;     // a lease that was not renewed for so long has no holder
  double takeover = 20;  // a lock's lease of another host that is not renewed for so long has none
};
// Of this process; changed by tests only, before any lease is held.
LeaseTimes& lease_times();

class Lease {
 public:
  // Makes the file, or takes it over, and renews it until the Lease ends, which removes it. Null where the
  // file can't be made, as by a reader who may not write there.
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

// Who holds the lease, "process 17 on node1"; "" where there is none or it is stale. Where that can't be told
// it counts as held.
std::string lease_holder(const std::string& path);

// Holds `path` exclusively while it lives; the system ends it with the process. First the system's lock is
// tried: a holder that it shows is an error at once. Then the lease PATH.lease: one of another host may be
// behind a lock that doesn't cross hosts, so it is watched for up to LeaseTimes::takeover seconds. A holder
// that ended in good order has removed it, and one of this host is known from the lock: neither waits.
class FileLock {
 public:
  enum Rest : std::uint8_t { keeps, removes };  // what becomes of the file at the end
  // UsageError: "WHAT is in use by process 17 on node1; ADVICE". IoError: the file can't be made.
  FileLock(std::string path, const std::string& what, const std::string& advice, Rest rest);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  bool lock();  // false: the system has no locks there
  void wait_for_lease(bool locked);
  std::string path_, what_, advice_;
  Rest rest_;
  int fd_ = -1;
  std::unique_ptr<Lease> lease_;
};

// Who holds the lock of a file now; "" where nobody does, or it can't be told.
std::string lock_holder(const std::string& path);

}  // namespace redco
