#include "assembly/trust.h"

#include <filesystem>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/user_folders.h"

namespace redco {

namespace {

constexpr i64 kMostTrusted = 16 << 20;

std::string entry(const std::string& path, const std::string& hash, const std::string& job_hash) {
  std::error_code none;
  const std::string real = std::filesystem::canonical(path, none).string();
  return hash + (job_hash.empty() ? "" : " job=" + job_hash) + "  " + real;
}

std::string hash_of(const std::string& text) {
  Sha256 h;
  h.update(text);
  return h.hex();
}

bool is_listed(const std::string& list, const std::string& first, const std::string& second) {
  if (list.empty() || !exists(list)) return false;
  std::istringstream lines(read_file(list, kMostTrusted));
  for (std::string line; std::getline(lines, line);)
    if (line == first || line == second) return true;
  return false;
}

void add_entry(const std::string& list, const std::string& line) {
  if (is_listed(list, line, line)) return;
  make_dirs(parent_path(list));
  append_line(list, line + "\n");
}

}  // namespace

std::string trusted_file() {
  const std::string folder = user_config_folder();
  return folder.empty() ? "" : join_path(folder, "trusted");
}

bool is_trusted(const std::string& path, const std::string& job) {
  const std::string hash = sha256_of_file(path);
  return is_listed(trusted_file(), entry(path, hash, ""), entry(path, hash, hash_of(job)));
}

std::string trust(const std::string& path) {
  const std::string list = trusted_file();
  if (list.empty())
    throw UsageError(
        "[trust] this user has no home folder: set HOME or XDG_CONFIG_HOME to a folder of yours");
  const std::string hash = sha256_of_file(path);
  add_entry(list, entry(path, hash, ""));
  return hash;
}

void trust_for_job(const std::string& path, const std::string& job) {
  try {
    if (const std::string list = trusted_file(); !list.empty())
      add_entry(list, entry(path, sha256_of_file(path), hash_of(job)));
  } catch (const Error& e) {
    info("[trust] commands on this run's checkpoints need pipeline={}: {}", path, e.what());
  }
}

}  // namespace redco
