// Temporary files and folders of this process, so that end_process() (base/signals.h) can remove them.
#pragma once

#include <string>

namespace redco {

// Registers or unregisters a path to remove if the process ends early. Any thread may call these.
void add_temporary(const std::string& path);
void forget_temporary(const std::string& path);
// Removes all registered paths. Errors are ignored because the process is ending.
void remove_temporaries();

// A new folder in $TMPDIR (or /tmp), or a hidden one in `base`. The destructor removes it. IoError.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& base = "");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace redco
