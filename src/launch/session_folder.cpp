#include "launch/session_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>

#include "launch/watch/wire.h"

namespace redco {

namespace {
constexpr const char* kBegin = "redco-sessions-";
constexpr i64 kOldSeconds = 60;  // a daemon that starts makes its session in less
}  // namespace

SessionFolder::SessionFolder(bool elsewhere) {
  std::error_code error;
  const auto temp = elsewhere ? "/tmp" : std::filesystem::temp_directory_path(error);
  path_ = ((error ? "/tmp" : temp) / (kBegin + random_key().substr(0, 12))).string();
}

SessionFolder::~SessionFolder() {
  std::error_code none;
  std::filesystem::remove_all(path_, none);
}

void remove_empty_session_folders(const std::string& temp) {
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(temp, none)) {
    struct stat s {};
    if (entry.path().filename().string().starts_with(kBegin) && lstat(entry.path().c_str(), &s) == 0 &&
        std::time(nullptr) - s.st_mtime > kOldSeconds)
      rmdir(entry.path().c_str());  // fails if it has files, or is another user's
  }
}

}  // namespace redco
