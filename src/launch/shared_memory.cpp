#include "launch/shared_memory.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <set>
#include <vector>

namespace redco {

namespace {

namespace fs = std::filesystem;
constexpr double kQuietSeconds = 60;

// The entries of a folder with this prefix and type (S_IFREG, S_IFDIR; never a link) that belong to this user
// and are older than kQuietSeconds.
std::vector<fs::path> old_entries(const fs::path& folder, const std::string& prefix, mode_t type) {
  std::vector<fs::path> out;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    struct stat s {};
    if (it->path().filename().string().rfind(prefix, 0) != 0 || lstat(it->path().c_str(), &s) != 0) continue;
    const double quiet = std::difftime(std::time(nullptr), s.st_mtime);
    if ((s.st_mode & S_IFMT) == type && s.st_uid == geteuid() && quiet > kQuietSeconds)
      out.push_back(it->path());
  }
  return out;
}

bool is_number(const std::string& s) {
  return !s.empty() && s.find_first_not_of("0123456789") == std::string::npos;
}

// Removes from `files` the names that a process has mapped.
void keep_mapped(const std::string& root, std::set<std::string>& files) {
  std::error_code error;
  for (fs::directory_iterator it(root + "/proc", error), end; !error && it != end; it.increment(error)) {
    if (!is_number(it->path().filename())) continue;
    std::ifstream maps(it->path() / "maps");
    for (std::string line; !files.empty() && std::getline(maps, line);)
      if (const auto at = line.rfind("/vader_segment."); at != std::string::npos)
        files.erase(line.substr(at + 1, line.find(' ', at) - at - 1));
  }
}

// Where Open MPI may have put its sessions, without a / at the end.
std::set<std::string> temporary_folders() {
  std::set<std::string> out{"/tmp"};
  for (const char* name : {"OMPI_MCA_orte_tmpdir_base", "TMPDIR", "TMP", "TEMP"})
    if (const char* folder = std::getenv(name); folder && *folder == '/') out.insert(folder);
  return out;
}

}  // namespace

int clean_shared_memory(const std::string& host, const std::string& root) {
  int removed = 0;
  std::error_code ignored;
  std::set<std::string> segments, names{host, host.substr(0, host.find('.'))};
  for (const std::string& name : names) {
    if (name.empty()) continue;
    for (const auto& p :
         old_entries(root + "/dev/shm", fmt::format("vader_segment.{}.{}.", name, geteuid()), S_IFREG))
      segments.insert(p.filename());
    for (const std::string& folder : temporary_folders()) {
      const fs::path sessions = fmt::format("{}{}/ompi.{}.{}", root, folder, name, geteuid());
      for (const auto& p : old_entries(sessions, "pid.", S_IFDIR)) {
        const std::string pid = p.filename().string().substr(4);
        if (is_number(pid) && !fs::exists(root + "/proc/" + pid, ignored))
          removed += fs::remove_all(p, ignored) > 0 && !ignored;
      }
    }
  }
  if (!segments.empty()) keep_mapped(root, segments);
  for (const std::string& name : segments) removed += fs::remove(root + "/dev/shm/" + name, ignored);
  return removed;
}

}  // namespace redco
