#include "launch/session_folder.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "support/temp_dir.h"

namespace redco {
namespace {

namespace fs = std::filesystem;

TEST(SessionFolder, EachStartHasItsOwnAndRemovesIt) {
  std::string path;
  {
    const SessionFolder one(true), other(true);
    EXPECT_NE(one.path(), other.path());
    EXPECT_EQ(fs::path(one.path()).parent_path(), "/tmp");
    path = one.path();
    EXPECT_FALSE(fs::exists(path));
    fs::create_directories(path + "/prterun.a.21.0/1");
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(SessionFolder, OnlyOldEmptyFoldersAreRemoved) {
  const test::TempDir dir;
  const auto make = [&](const std::string& name, bool old) {
    fs::create_directories(dir.path() + "/" + name);
    if (old)
      fs::last_write_time(dir.path() + "/" + name, fs::file_time_type::clock::now() - std::chrono::hours(1));
  };
  make("redco-sessions-0123", true);
  make("redco-sessions-4567", false);
  make("mine", true);
  make("redco-sessions-89ab/prted.b.21.0", false);
  make("redco-sessions-89ab", true);
  remove_empty_session_folders(dir.path());
  EXPECT_FALSE(fs::exists(dir.path() + "/redco-sessions-0123"));
  EXPECT_TRUE(fs::exists(dir.path() + "/redco-sessions-4567"));
  EXPECT_TRUE(fs::exists(dir.path() + "/mine"));
  EXPECT_TRUE(fs::exists(dir.path() + "/redco-sessions-89ab/prted.b.21.0"));
  remove_empty_session_folders(dir.path() + "/none");
}

}  // namespace
}  // namespace redco
