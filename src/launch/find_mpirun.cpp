#include "launch/find_mpirun.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/words.h"
#include "launch/capture.h"

namespace redco {

namespace {

namespace fs = std::filesystem;

// Debian's alternatives may link `mpirun` to another MPI.
constexpr const char* kNames[] = {"mpirun", "mpirun.openmpi"};
constexpr int kLevelsUp = 3;  // prefix/lib, prefix/lib/x86_64-linux-gnu, prefix/lib64/openmpi/lib
constexpr double kAnswerSeconds = 60;

fs::path real(const fs::path& p) {
  std::error_code error;
  const fs::path r = fs::canonical(p, error);
  return error ? p : r;
}

// The first file of this name in the folders of `path`; "" if there is none.
fs::path in_path(const std::string& name, const std::string& path) {
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    const fs::path file = fs::path(path.substr(at, end - at)) / name;
    if (access(file.c_str(), X_OK) == 0) return file;
    at = end + 1;
  }
  return {};
}

std::vector<fs::path> candidates(const std::string& library, const std::string& path) {
  std::vector<fs::path> all;
  const auto add = [&](const fs::path& p) {
    if (p.empty() || access(p.c_str(), X_OK) != 0) return;
    if (std::none_of(all.begin(), all.end(), [&](const fs::path& q) { return real(q) == real(p); }))
      all.push_back(p);
  };
  if (!library.empty()) {
    fs::path folder = real(library).parent_path();
    for (int level = 0; level < kLevelsUp && folder.has_relative_path(); level++) {
      folder = folder.parent_path();
      for (const char* name : kNames) add(folder / "bin" / name);
    }
  }
  for (const char* name : kNames) add(in_path(name, path));
  return all;
}

// "4.1.4" from "Open MPI v4.1.4" or "mpirun (Open MPI) 4.1.4\n..."; "" for another MPI.
std::string number_of(const std::string& text) {
  if (text.find("Open MPI") == std::string::npos) return {};
  const std::string line = text.substr(0, text.find('\n'));
  const std::string word = line.substr(line.rfind(' ') + 1);
  return word.rfind('v', 0) == 0 ? word.substr(1) : word;
}

}  // namespace

std::string find_mpirun(const std::string& library, const std::string& version, const std::string& path) {
  const auto all = candidates(library, path);
  std::string others;
  for (const fs::path& mpirun : all) {
    std::string said;
    try {
      said = output_of({mpirun.string(), "--version"}, kAnswerSeconds);
    } catch (const Error& e) {
      said = e.what();
    }
    if (!number_of(said).empty() && number_of(said) == number_of(version)) {
      const std::string name = mpirun.filename();
      return real(in_path(name, path)) == real(mpirun) ? name : mpirun.string();
    }
    others += fmt::format("{}{} is '{}'", others.empty() ? "" : ", ", mpirun.string(),
                          excerpt(said.substr(0, said.find('\n'))));
  }
  if (others.empty())
    throw UsageError(
        "[launch] there is no mpirun in PATH or near {}. Jobs of several ranks need Open MPI's mpirun. "
        "Install it: apt-get install openmpi-bin (on a cluster: module load openmpi)",
        library.empty() ? "the MPI library" : library);
  throw UsageError(
      "[launch] redco is linked with {} ({}), but {}. Put the mpirun of the linked library first in PATH",
      version, library, others);
}

}  // namespace redco
