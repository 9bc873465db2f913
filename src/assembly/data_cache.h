// The folder of a job's indexes.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/process.h"
#include "base/temporaries.h"
#include "comm/group.h"
#include "job/job_config.h"

namespace redco {

// Whether the ranks run on several hosts. Collective.
inline bool are_on_several_hosts(Group& world) {
  const std::vector<std::string> hosts = world.gather(host_name());
  return std::any_of(hosts.begin(), hosts.end(), [&](const std::string& h) { return h != hosts[0]; });
}

// cache_folder() of the job; for a job without one, a temporary folder that lives as long as this object.
// Several hosts share the current folder, and not /tmp. IoError: it cannot be made.
class DataCache {
 public:
  explicit DataCache(const JobConfig& job, bool several_hosts = false) {
    if (const auto folder = cache_folder(job)) {
      path_ = *folder;
    } else if (several_hosts) {
      try {
        path_ = temporary_.emplace(".").path();
      } catch (const IoError& e) {
        throw IoError(
            "[data] {}. The hosts need a folder that they share for the index of the data: set workdir or "
            "data.cache",
            e.what());
      }
    } else {
      path_ = temporary_.emplace().path();
    }
  }
  const std::string& path() const { return path_; }

 private:
  std::optional<TemporaryFolder> temporary_;
  std::string path_;
};

}  // namespace redco
