// Temporary files and folders of this process, so that an end at once (base/signals.h) leaves none.
#pragma once

#include <string>

namespace redco {

// Registers a path that is to go when the process ends early, and takes it back. Any thread.
void add_temporary(const std::string& path);
void forget_temporary(const std::string& path);
// Removes what is registered. Failures are ignored: the process is ending.
void remove_temporaries();

// A new folder under $TMPDIR (or /tmp), removed together with its object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace redco
