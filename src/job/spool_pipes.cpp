#include "job/spool_pipes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "base/user_folders.h"
#include "base/words.h"
#include "data/index/cached_index.h"

namespace redco {

namespace {

bool is_standard_input(const std::string& path) {
  return path == "-" || path == "/dev/stdin" || path == "/dev/fd/0" || path == "/proc/self/fd/0";
}

std::string words_of_pipe(const std::string& path) {
  return is_standard_input(path) ? "standard input" : "the pipe " + excerpt(path);
}

// The ending that tells the format.
std::string ending_of(const std::string& format) {
  return format == "text" ? ".txt" : format == "parallel" ? "" : "." + format;
}

// Copies the bytes into a file named by their hash.
std::string copy_pipe(const std::string& path, const std::string& folder, const std::string& ending) {
  const bool standard = is_standard_input(path);
  if (standard && isatty(STDIN_FILENO))
    throw UsageError("standard input is a terminal, expected a file or a pipe: zcat data.gz | redco ...");
  const int fd = standard ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) throw IoError("{}: cannot be opened: {}", words_of_pipe(path), std::strerror(errno));
  const std::string draft = join_path(folder, fmt::format("piped-{}{}", getpid(), ending));
  prepare_cache(folder, draft);
  DurableFile file = DurableFile::create(draft);
  Hasher hasher;
  u64 bytes = 0;
  std::string block(std::size_t{1} << 20, '\0');
  for (;;) {
    const ssize_t n = read(fd, block.data(), block.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      close(fd);
      throw IoError("{}: {}", words_of_pipe(path), std::strerror(error));
    }
    if (n == 0) break;
    bytes += static_cast<u64>(n);
    hasher.update(block.data(), static_cast<std::size_t>(n));
    file.append({block.data(), static_cast<std::size_t>(n)});
  }
  close(fd);
  if (bytes == 0) throw ContentsError("[data] {} has no bytes", words_of_pipe(path));
  file.commit();
  const std::string kept = join_path(folder, fmt::format("piped-{}{}", hasher.digest128().hex(), ending));
  rename_durable(draft, kept);
  return kept;
}

class PipeSpooler {
 public:
  explicit PipeSpooler(const JobConfig& job) : job_(job) {}

  // Replaces `path`, the value of `key`, if it is a pipe. format: of its contents.
  void spool(const std::string& key, std::string& path, const std::optional<std::string>& format) {
    if (!is_pipe(path)) return;
    const std::string name = is_standard_input(path) ? "-" : path, place = job_.origins.where(key);
    if (!seen_.insert(name).second)
      throw UsageError("{}: {}: {} is named twice, but it can be read only once", place, key,
                       words_of_pipe(path));
    if (!format)
      throw UsageError(
          "{}: {}: {} has no name that tells its format. Set data.format, e.g. data.format=jsonl", place, key,
          words_of_pipe(path));
    // A command may load its job again.
    static std::map<std::string, std::string> copies;
    auto it = copies.find(name);
    if (it == copies.end()) {
      std::string folder = cache_folder(job_).value_or("");
      if (folder.empty()) folder = user_cache_folder();
      if (folder.empty())
        throw UsageError("{}: {}: there is no folder to store {}. Set data.cache", place, key,
                         words_of_pipe(path));
      it = copies.emplace(name, copy_pipe(path, folder, ending_of(*format))).first;
      info("[data] {}: {} ({}) is stored in {}", key, words_of_pipe(path),
           human_bytes(static_cast<u64>(file_size(it->second))), it->second);
    }
    path = it->second;
  }

 private:
  const JobConfig& job_;
  std::set<std::string> seen_;
};

}  // namespace

bool is_pipe(const std::string& path) {
  if (is_standard_input(path) || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/"))
    return true;
  const auto info = file_info(path);
  return info && info->kind == FileInfo::other;
}

void spool_pipes(JobConfig& job, JobUse use) {
  PipeSpooler spooler(job);
  for (const bool evaluation : {false, true}) {
    const bool reads = use == JobUse::train || use == JobUse::data || (evaluation && use == JobUse::evaluate);
    if (!reads) continue;
    job.data.each_list(evaluation, [&](const std::string& key, std::vector<std::string>& files) {
      for (std::size_t i = 0; i < files.size(); ++i)
        spooler.spool(fmt::format("{}[{}]", key, i), files[i], job.data.format);
    });
  }
  if (use == JobUse::predict && job.predict.input)
    spooler.spool("predict.input", *job.predict.input, job.data.format.value_or("jsonl"));
}

}  // namespace redco
