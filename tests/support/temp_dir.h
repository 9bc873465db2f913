// A temporary folder for a test; the destructor removes it.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>

namespace redco::test {

class TempDir {
 public:
  // in_memory: on a memory file system if there is one, for tests that make thousands of small files.
  enum Where { on_disk, in_memory };
  explicit TempDir(Where where = on_disk) {
    const char* base = std::getenv("TMPDIR");
    std::string folder = where == in_memory && ::access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                         : base && *base                                       ? base
                                                                               : "/tmp";
    path_ = folder + "/redco-test-XXXXXX";
    if (!::mkdtemp(path_.data())) throw std::runtime_error("mkdtemp " + path_);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot open " + path);
  std::ostringstream s;
  s << in.rdbuf();
  return s.str();
}

inline void spill(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out << bytes;
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace redco::test
