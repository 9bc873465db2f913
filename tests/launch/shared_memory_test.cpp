#include "launch/shared_memory.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"

namespace redco {
namespace {

namespace fs = std::filesystem;

// Fake /dev/shm, /tmp and /proc.
class SharedMemory : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* folder : {"dev/shm", "tmp", "proc/1"}) fs::create_directories(at(folder));
  }
  fs::path at(const std::string& path) const { return dir_ / path; }
  void file(const std::string& path, const std::string& text = "x") {
    fs::create_directories(at(path).parent_path());
    std::ofstream(at(path)) << text;
  }
  // Makes all files two minutes old.
  void age() {
    for (const char* top : {"dev", "tmp"})
      for (const auto& e : fs::recursive_directory_iterator(at(top)))
        if (!e.is_symlink())
          fs::last_write_time(e.path(), fs::file_time_type::clock::now() - std::chrono::minutes(2));
  }
  int clean() { return clean_shared_memory("node1.example.org", dir_.path()); }
  std::string segment(const std::string& host, const std::string& rest) {
    return fmt::format("dev/shm/vader_segment.{}.{}.{}", host, geteuid(), rest);
  }
  std::string session(int pid) { return fmt::format("tmp/ompi.node1.{}/pid.{}", geteuid(), pid); }
  test::TempDir dir_;
};

TEST_F(SharedMemory, RemovesUnusedFiles) {
  file(segment("node1", "1b.0"));
  file(segment("node1.example.org", "1b.0"));
  file(session(77) + "/0/contact.txt");
  age();
  EXPECT_EQ(clean(), 3);
  EXPECT_TRUE(fs::is_empty(at("dev/shm")));
  EXPECT_FALSE(fs::exists(at(session(77))));
  EXPECT_EQ(clean(), 0);
}

// Clusters give each job its own TMPDIR, on a disk that stays.
TEST_F(SharedMemory, RemovesSessionsInTmpdir) {
  const char* const before = std::getenv("TMPDIR");
  const std::string kept = before ? before : "";
  setenv("TMPDIR", "/tmp/job-7", 1);
  const std::string session = fmt::format("tmp/job-7/ompi.node1.{}/pid.77", geteuid());
  file(session + "/0/contact.txt");
  age();
  EXPECT_EQ(clean(), 1);
  EXPECT_FALSE(fs::exists(at(session)));
  before ? setenv("TMPDIR", kept.c_str(), 1) : unsetenv("TMPDIR");
}

TEST_F(SharedMemory, KeepsNewAndMappedFiles) {
  file(segment("node1", "1b.0"));
  file(session(1) + "/contact.txt");  // its process runs
  age();
  file("proc/1/maps", fmt::format("7f00-7f10 rw-s 00000000 00:1a 5 /{}\n", segment("node1", "1b.0")));
  file(segment("node1", "2c.0"));  // new: a job that is starting
  file(session(77) + "/contact.txt");
  EXPECT_EQ(clean(), 0);
}

TEST_F(SharedMemory, KeepsFilesOfOtherHostsAndUsers) {
  file(segment("node2", "1b.0"));
  file(fmt::format("dev/shm/vader_segment.node1.{}.1b.0", geteuid() + 1));
  file("dev/shm/other");
  file(fmt::format("tmp/ompi.node2.{}/pid.77/x", geteuid()));
  file("precious/x");
  fs::create_directories(at(session(1)).parent_path());
  fs::create_symlink(at("precious"), at(session(77)));
  fs::create_symlink(at("precious/x"), at(segment("node1", "3d.0")));
  if (geteuid() == 0) {
    file(segment("node1", "4e.0"));
    ASSERT_EQ(chown(at(segment("node1", "4e.0")).c_str(), 65534, 65534), 0);
  }
  age();
  EXPECT_EQ(clean(), 0);
  EXPECT_TRUE(fs::exists(at("precious/x")));
}

}  // namespace
}  // namespace redco
