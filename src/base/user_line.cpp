#include "base/user_line.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <mutex>
#include <sstream>
#include <vector>

#include "base/file.h"
#include "base/run_program.h"
#include "base/temporaries.h"
#include "base/user_code.h"

namespace redco {

namespace {

constexpr i64 kMostText = i64{1} << 20;

std::mutex user_objects_mutex;
std::vector<std::string>& user_objects() {
  static std::vector<std::string> paths;
  return paths;
}
bool is_user_object(const char* path) {
  const std::lock_guard lock(user_objects_mutex);
  return path && std::ranges::find(user_objects(), path) != user_objects().end();
}

// Headers are redco's or the standard library's, inlined into the user's functions.
bool is_source_line(const std::string& line) {
  const std::size_t colon = line.rfind(':');
  if (colon == std::string::npos || colon + 1 == line.size() || line[colon + 1] == '?' ||
      line[colon + 1] == '0')
    return false;
  const std::string ending = std::filesystem::path(line.substr(0, colon)).extension().string();
  return !ending.empty() && !ending.starts_with(".h") && line.find("/include/") == std::string::npos;
}

}  // namespace

void add_user_object(const std::string& path) {
  const std::lock_guard lock(user_objects_mutex);
  user_objects().push_back(path);
}

std::string at_user_line() {
  if (!running_user_code()) return "";
  std::array<void*, 256> frames;
  const int n = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  std::string object;
  std::vector<std::string> command = {"addr2line", "-i", "-e", ""};
  for (int i = 0; i < n; ++i) {
    Dl_info info{};
    if (!dladdr(frames[static_cast<std::size_t>(i)], &info) || !is_user_object(info.dli_fname)) continue;
    if (object.empty()) object = info.dli_fname;
    if (object != info.dli_fname) break;
    // A frame is the address after its call.
    const auto offset = reinterpret_cast<std::uintptr_t>(frames[static_cast<std::size_t>(i)]) -
                        reinterpret_cast<std::uintptr_t>(info.dli_fbase) - 1;
    command.push_back(fmt::format("{:#x}", offset));
  }
  if (object.empty()) return "";
  const std::string name = std::filesystem::path(object).filename().string();
  command[3] = object;
  try {
    const TemporaryFolder folder;
    const std::string log = join_path(folder.path(), "lines");
    if (run_program(command, log) != 0) return " (in " + name + ")";
    std::istringstream lines(read_file(log, kMostText));
    for (std::string line; std::getline(lines, line);) {
      line = line.substr(0, line.find(" ("));  // (discriminator 2)
      if (is_source_line(line)) return " (" + std::filesystem::path(line).filename().string() + ")";
    }
  } catch (const std::exception&) {  // the error that is being made is what counts
  }
  return " (in " + name + ")";
}

}  // namespace redco
