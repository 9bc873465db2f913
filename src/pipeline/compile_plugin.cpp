#include "pipeline/compile_plugin.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/run_program.h"
#include "base/temporaries.h"
#include "base/user_folders.h"
#include "pipeline/abi.h"

namespace redco {

namespace {

namespace fs = std::filesystem;
constexpr i64 kMostSourceBytes = i64{1} << 28;
constexpr int kMostLines = 30;  // of the compiler's messages

// libredco.so.
std::string library_path() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<const void*>(&compiled_plugin), &info) || !info.dli_fname) return "";
  return fs::weakly_canonical(info.dli_fname).string();
}

// The folders with redco.h and the hash of the interface: of an installed redco, or of its build folder.
std::vector<std::string> header_folders(const std::string& path, const std::string& setting) {
  const fs::path library = library_path();
  fs::path up = library.parent_path();
  for (int k = 0; k < 3 && up.has_relative_path(); ++k) {
    up = up.parent_path();
    if (const fs::path f = up / "include" / "redco"; fs::exists(f / "redco.h")) return {f.string()};
  }
  const fs::path build = REDCO_BUILD_FOLDER;
  if (library.parent_path() == fs::weakly_canonical(build / "src") &&
      fs::exists(fs::path(REDCO_SOURCE_FOLDER) / "redco.h"))
    return {REDCO_SOURCE_FOLDER, (build / "abi").string()};
  throw UsageError(
      "[{}] {} needs the headers of redco, which are not in {}. Install them (the package redco-dev, or `cmake "
      "--install`), or compile it elsewhere and set {} to the shared object",
      setting, path, (library.parent_path().parent_path() / "include" / "redco").string(), setting);
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> out;
  for (std::string word; in >> word;) out.push_back(word);
  return out;
}

// The files of a rule that `-MMD` wrote: "plugin.so: a.cpp b\ c.h \<newline> d.h".
std::vector<std::string> prerequisites(const std::string& rule) {
  std::vector<std::string> out(1);
  for (std::size_t i = rule.find(": ") + 1; i < rule.size(); ++i) {
    const char c = rule[i], next = i + 1 < rule.size() ? rule[i + 1] : '\n';
    if (c == '\\' && (next == ' ' || next == '#' || next == '\\')) {
      out.back() += next, ++i;
    } else if (c == '$' && next == '$') {
      out.back() += '$', ++i;
    } else if (c == ' ' || c == '\n' || (c == '\\' && next == '\n')) {
      if (!out.back().empty()) out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

std::string hash_of(const std::string& file) { return hash128(read_file(file, kMostSourceBytes)).hex(); }

// "HASH PATH" of each of these files, a line each.
std::string described(const std::vector<std::string>& files) {
  std::string out;
  for (const std::string& f : files)
    out += hash_of(f) + " " + fs::absolute(f).lexically_normal().string() + "\n";
  return out;
}

// Whether the files of described() are as they were.
bool unchanged(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t space = line.find(' ');
    if (space == std::string::npos || !exists(line.substr(space + 1)) ||
        hash_of(line.substr(space + 1)) != line.substr(0, space))
      return false;
  }
  return !text.empty();
}

// Waits for other processes that hold the lock. Where the file system has no locks, each compiles.
class Waiting {
 public:
  explicit Waiting(const std::string& path) : fd_(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644)) {
    while (fd_ >= 0 && ::flock(fd_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Waiting() {
    if (fd_ >= 0) ::close(fd_);
  }
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  int fd_;
};

std::string first_lines(const std::string& text) {
  std::istringstream lines(text);
  std::string out, line;
  for (int k = 0; k < kMostLines && std::getline(lines, line); ++k) out += "\n  " + line;
  return out;
}

}  // namespace

bool is_cpp_file(const std::string& path) {
  return path.ends_with(".cpp") || path.ends_with(".cc") || path.ends_with(".cxx");
}

CompiledPlugin compiled_plugin(const std::string& path, const std::string& setting) {
  const std::string cache = user_cache_folder();
  if (cache.empty())
    throw UsageError("[{}] {} needs a folder for the compiled code. Set XDG_CACHE_HOME", setting, path);
  std::vector<std::string> command = {REDCO_COMPILER};
  for (const std::string& w : words_of(REDCO_COMPILER_FLAGS)) command.push_back(w);
  for (const std::string& f : header_folders(path, setting)) command.insert(command.end(), {"-isystem", f});
  std::string key = fs::canonical(path).string() + "\n" + library_abi() + "\n" + library_path();
  for (const std::string& w : command) key += "\n" + w;
  const std::string folder = join_path(join_path(cache, "plugins"), hash128(key).hex());
  make_dirs(folder);
  const Waiting lock(join_path(folder, "lock"));
  const std::string sources = join_path(folder, "sources"), object = join_path(folder, "plugin.so");
  if (exists(sources) && exists(object))
    if (const std::string text = read_file(sources, kMostSourceBytes); unchanged(text))
      return {object, hash128(text).hex()};

  info("[{}] compiling {}", setting, path);
  const auto start = std::chrono::steady_clock::now();
  const auto begun = fs::file_time_type::clock::now();
  const TemporaryFolder made(folder);
  const std::string result = join_path(made.path(), "plugin.so"), rule = join_path(made.path(), "rule"),
                    log = join_path(made.path(), "log");
  command.insert(command.end(), {"-MMD", "-MF", rule, "-o", result, path, library_path()});
  const int status = run_program(command, log);
  if (status < 0)
    throw UsageError("the compiler {} does not start: {}. Install it, or set the path of a shared object",
                     command[0], std::strerror(-status));
  if (status != 0)
    throw UsageError("[{}] {} does not compile:{}", setting, path,
                     first_lines(read_file(log, kMostSourceBytes)));
  std::vector<std::string> files;
  for (const std::string& f : prerequisites(read_file(rule, kMostSourceBytes)))
    if (f != library_path()) files.push_back(f);
  const std::string text = described(files);
  remove_file(sources);
  fs::rename(result, object);
  // A source that was edited meanwhile may not be what was compiled.
  if (std::ranges::all_of(files, [&](const std::string& f) { return fs::last_write_time(f) < begun; }))
    write_file_durable(sources, text);
  info("[{}] compiled {} in {:.0f} s", setting, path,
       std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  return {object, hash128(text).hex()};
}

}  // namespace redco
