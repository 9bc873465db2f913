#include "base/temporaries.h"

#include <stdlib.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace redco {

namespace {
// Never destroyed: the signal thread may outlive static objects.
std::timed_mutex& mutex() {
  static auto* m = new std::timed_mutex;
  return *m;
}
std::set<std::string>& paths() {
  static auto* p = new std::set<std::string>;
  return *p;
}
}  // namespace

void add_temporary(const std::string& path) {
  std::lock_guard lock(mutex());
  paths().insert(path);
}

void forget_temporary(const std::string& path) {
  std::lock_guard lock(mutex());
  paths().erase(path);
}

void remove_temporaries() {
  std::unique_lock lock(mutex(), std::chrono::milliseconds(100));
  if (!lock.owns_lock()) return;
  for (const std::string& p : paths()) {
    std::error_code ignored;
    std::filesystem::remove_all(p, ignored);
  }
}

TemporaryFolder::TemporaryFolder(const std::string& base) {
  const char* const usual = std::getenv("TMPDIR");
  path_ = base.empty() ? join_path(usual && *usual ? usual : "/tmp", "redco-XXXXXX")
                       : join_path(base, ".redco-XXXXXX");
  if (!mkdtemp(path_.data())) throw IoError("{}: {}", path_, std::strerror(errno));
  add_temporary(path_);
}

TemporaryFolder::~TemporaryFolder() {
  try {
    remove_tree(path_);
  } catch (const std::exception& e) {
    warn("cannot remove {}: {}", path_, e.what());
  }
  forget_temporary(path_);
}

}  // namespace redco
