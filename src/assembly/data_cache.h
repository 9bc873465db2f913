// The folder of a job's indexes.
#pragma once

#include <optional>
#include <string>

#include "base/temporaries.h"
#include "job/job_config.h"

namespace redco {

// cache_folder() of the job; for a job without one, a temporary folder that lives as long as this object.
class DataCache {
 public:
  explicit DataCache(const JobConfig& job) {
    if (const auto folder = cache_folder(job))
      path_ = *folder;
    else
      path_ = temporary_.emplace().path();
  }
  const std::string& path() const { return path_; }

 private:
  std::optional<TemporaryFolder> temporary_;
  std::string path_;
};

}  // namespace redco
