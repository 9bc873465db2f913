// Ids and cache folders of the hub, and the folders that they resolve to.
#include "ckpt/hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using test::spill;
using test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kOld(40, 'a'), kNew(40, 'b');

class Hub : public ::testing::Test {
 protected:
  Hub() {
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "TRANSFORMERS_CACHE", "HF_HOME",
                             "XDG_CACHE_HOME", "HOME"}) {
      const char* value = std::getenv(name);
      before_.emplace_back(name, value ? value : "");
      unsetenv(name);
    }
    setenv("HF_HUB_CACHE", (dir_ / "cache").c_str(), 1);
  }
  ~Hub() override {
    for (const auto& [name, value] : before_)
      value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
  }
  // A repository in huggingface_hub's layout: snapshots of links to blobs.
  std::string repo(const std::string& name, const std::vector<std::string>& commits,
                   const std::string& cache = "cache") {
    const std::string folder = dir_ / (cache + "/" + name);
    std::filesystem::create_directories(folder + "/blobs");
    std::filesystem::create_directories(folder + "/refs");
    std::filesystem::create_directories(folder + "/snapshots");
    for (const std::string& c : commits) {
      std::filesystem::create_directories(folder + "/snapshots/" + c);
      spill(folder + "/blobs/" + c, "{}");
      std::filesystem::create_symlink("../../blobs/" + c, folder + "/snapshots/" + c + "/config.json");
    }
    return folder;
  }
  static std::string error_of(const std::string& source) {
    try {
      return "found " + local_source(source);
    } catch (const UsageError& e) {
      return e.what();
    }
  }
  TempDir dir_;
  std::vector<std::pair<std::string, std::string>> before_;
};

TEST_F(Hub, ExistingPathsAreUnchanged) {
  spill(dir_ / "tokenizer.json", "{}");
  EXPECT_EQ(local_source(dir_.path()), dir_.path());
  EXPECT_EQ(local_source(dir_ / "tokenizer.json"), dir_ / "tokenizer.json");
  for (const char* s :
       {"", "bytes", "/no/such/path", "a/b/c", "org/none", "../x", "a b", "x@", "..", "org/..", "org/x@../y"})
    EXPECT_EQ(local_source(s), s);
  // A model's folder that has a subfolder snapshots is not a cache folder.
  std::filesystem::create_directories(dir_ / "model/snapshots/1");
  spill(dir_ / "model/config.json", "{}");
  EXPECT_EQ(local_source(dir_ / "model"), dir_ / "model");
}

TEST_F(Hub, Ids) {
  const std::string folder = repo("models--org--name", {kOld, kNew});
  spill(folder + "/refs/main", kNew);
  spill(folder + "/refs/v1", kOld + "\n");
  EXPECT_EQ(local_source("org/name"), folder + "/snapshots/" + kNew);
  EXPECT_EQ(local_source("org/name@main"), folder + "/snapshots/" + kNew);
  EXPECT_EQ(local_source("org/name@v1"), folder + "/snapshots/" + kOld);
  EXPECT_EQ(local_source("org/name@" + kOld), folder + "/snapshots/" + kOld);
  EXPECT_EQ(local_source("org/name@aaaaaaa"), folder + "/snapshots/" + kOld);
  EXPECT_THAT(error_of("org/name@ccc"),
              AllOf(HasSubstr("has no revision ccc"), HasSubstr("hf download org/name --revision ccc")));
  const std::string plain = repo("models--gpt2", {kOld});
  EXPECT_EQ(local_source("gpt2"), plain + "/snapshots/" + kOld);
}

TEST_F(Hub, CacheFolders) {
  const std::string folder = repo("models--org--name", {kOld});
  EXPECT_EQ(local_source(folder), folder + "/snapshots/" + kOld);
  EXPECT_EQ(local_source(folder + "/"), folder + "/snapshots/" + kOld);
  repo("models--org--name", {kNew});
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr("2 snapshots and no refs/main"), HasSubstr(kNew)));
  spill(folder + "/refs/main", kOld);
  EXPECT_EQ(local_source(folder), folder + "/snapshots/" + kOld);
  spill(folder + "/refs/main", std::string(40, 'c'));
  EXPECT_THAT(error_of(folder), AllOf(HasSubstr("which is missing"), HasSubstr("hf download org/name")));
  spill(folder + "/refs/main", "../../../etc");
  EXPECT_THAT(error_of(folder), HasSubstr("expected a commit's hash"));
  EXPECT_THAT(error_of(repo("models--none", {})), HasSubstr("no snapshot in this folder"));
}

// An interrupted download leaves links without targets.
TEST_F(Hub, BrokenLinksAreNamed) {
  const std::string folder = repo("models--org--half", {kOld}), snapshot = folder + "/snapshots/" + kOld;
  std::filesystem::create_symlink("../../blobs/w", snapshot + "/model.safetensors");
  spill(folder + "/blobs/w.incomplete", "");
  EXPECT_THAT(error_of("org/half"),
              AllOf(HasSubstr("model.safetensors"), HasSubstr(folder + "/blobs/w is missing"),
                    HasSubstr("w.incomplete"), HasSubstr("hf download org/half")));
  spill(folder + "/blobs/w", "");
  std::filesystem::create_symlink("../../blobs/v", snapshot + "/pytorch_model.bin");  // not read
  EXPECT_EQ(error_of("org/half"), "found " + snapshot);
}

TEST_F(Hub, FoldersOfDownloads) {
  EXPECT_THAT(hub_caches(), ::testing::ElementsAre(dir_ / "cache"));
  setenv("HF_HOME", (dir_ / "home").c_str(), 1);
  setenv("HOME", dir_.path().c_str(), 1);
  EXPECT_THAT(hub_caches(),
              ::testing::ElementsAre(dir_ / "cache", dir_ / "home/hub", dir_ / ".cache/huggingface/hub"));
  setenv("HUGGINGFACE_HUB_CACHE", "~/older", 1);
  EXPECT_EQ(hub_caches()[1], dir_ / "older");
  const std::string folder = repo("models--a--b", {kOld}, "home/hub");
  EXPECT_EQ(local_source("a/b"), folder + "/snapshots/" + kOld);
  EXPECT_THAT(hub_hint("a/c@v2"),
              AllOf(HasSubstr(dir_ / "home/hub"), HasSubstr("`hf download a/c --revision v2`")));
  EXPECT_EQ(hub_hint("/a/b"), "");
  EXPECT_EQ(hub_hint("./a"), "");
}

TEST_F(Hub, SnapshotsHaveAnIdAndARevision) {
  const auto s = hub_source("/c/models--org--name/snapshots/" + kOld + "/");
  ASSERT_TRUE(s);
  EXPECT_EQ(s->id, "org/name");
  EXPECT_EQ(s->revision, kOld);
  EXPECT_FALSE(hub_source("/models/snapshots/x"));
  EXPECT_FALSE(hub_source("runs"));
}

}  // namespace
}  // namespace redco::ckpt
