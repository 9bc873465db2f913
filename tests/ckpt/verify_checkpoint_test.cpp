#include "ckpt/verify_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "base/error.h"
#include "base/file.h"
#include "base/syscalls.h"
#include "ckpt/publish.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using test::slurp;
using test::spill;
using test::TempDir;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr i64 kChunk = 1000;

class Verify : public ::testing::Test {
 protected:
  // Two checkpoints: a model file of three chunks, 5 bytes in the last, and an optimizer.
  void SetUp() override {
    for (const i64 step : {10, 20}) {
      make_dirs(at(step, "training"));
      spill(at(step, "model.safetensors"), std::string(2 * kChunk + 5, 'x'));
      spill(at(step, "training/optimizer.safetensors"), "moments");
      Manifest m{.step = step, .chunk_bytes = kChunk};
      for (const char* file : {"model.safetensors", "training/optimizer.safetensors"})
        m.files.push_back(record_file(at(step), file, kChunk));
      spill(at(step, kManifestPath), to_json(m));
    }
  }
  void TearDown() override { sys::set_hook({}); }
  std::string at(i64 step, const std::string& file = "") {
    const std::string folder = join_path(folder_.path(), step_name(step));
    return file.empty() ? folder : join_path(folder, file);
  }
  void flip(const std::string& path, i64 offset) {
    std::fstream f(path, std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(offset);
    f.put('y');
  }
  // The result of the check of step 20 on every rank.
  std::vector<std::string> say(int ranks, Part part, const std::string& folder) {
    std::vector<std::string> all(ranks);
    redco::testing::on_mesh({ranks, 1}, [&](Context& c) {
      all[c.world().rank()] =
          error_text<ContentsError>([&] { verify_checkpoint(folder, part, "checkpoint.resume"); });
    });
    return all;
  }

  TempDir dir_{TempDir::in_memory};
  CheckpointFolder folder_{dir_.path()};
};

TEST_F(Verify, AFlippedByteIsFoundOnEveryRankWithItsRange) {
  for (const int ranks : {1, 2, 5})
    for (const std::string& text : say(ranks, Part::training, at(20))) EXPECT_EQ(text, "no error");
  for (const i64 offset : {i64{0}, kChunk + 1, 2 * kChunk + 4}) {
    flip(at(20, "model.safetensors"), offset);
    for (const int ranks : {1, 2, 5})
      for (const std::string& text : say(ranks, Part::model, at(20)))
        EXPECT_THAT(text, AllOf(HasSubstr(at(20, "model.safetensors") + ": damaged contents"),
                                HasSubstr(fmt::format("bytes {} to", offset / kChunk * kChunk)),
                                HasSubstr("checkpoint.resume=" + at(10) + " uses")));
    std::fstream f(at(20, "model.safetensors"), std::ios::in | std::ios::out | std::ios::binary);
    f.seekp(offset);
    f.put('x');
  }
}

TEST_F(Verify, TrainingFilesAreCheckedWhereTheyAreNeeded) {
  flip(at(20, "training/optimizer.safetensors"), 3);
  EXPECT_EQ(say(2, Part::model, at(20))[0], "no error");
  EXPECT_THAT(say(2, Part::training, at(20))[0], HasSubstr("training/optimizer.safetensors: damaged"));
  // By a pointer too: the remedy names the checkpoint's own folder.
  folder_.point("last", 20);
  EXPECT_THAT(say(1, Part::training, join_path(folder_.path(), "last"))[0], HasSubstr(at(10)));
  remove_file(at(20, "model.safetensors"));
  EXPECT_THAT(say(2, Part::model, at(20))[1], HasSubstr("model.safetensors is missing"));
}

TEST_F(Verify, EachByteIsReadOncePerHost) {
  std::atomic<i64> bytes{0};
  sys::set_hook([&](const sys::Call& c) {
    if (c.op == sys::Op::read && !c.path.ends_with("manifest.json")) bytes += c.bytes;
    return sys::Verdict{};
  });
  say(3, Part::training, at(20));
  EXPECT_EQ(bytes, 2 * kChunk + 5 + 7);
}

TEST_F(Verify, AFolderWithoutManifestIsNotChecked) {
  remove_file(at(20, kManifestPath));
  EXPECT_EQ(say(2, Part::training, at(20))[0], "no error");
  EXPECT_EQ(say(2, Part::model, dir_ / "nowhere")[0], "no error");
}

// As redco wrote it before format 2: one hash per file.
TEST_F(Verify, Format1IsChecked) {
  const std::string folder = dir_ / "old";
  make_dirs(folder + "/training");
  spill(folder + "/a", "abc");
  spill(folder + "/training/manifest.json",
        R"({"format_version": 1, "step": 3, "versions": {}, "files": [{"path": "a", "size": 3,
            "xxh3": "06b05ab6733a618578af5f94892f3950"}]})");
  EXPECT_EQ(say(2, Part::model, folder)[0], "no error");
  spill(folder + "/a", "abd");
  EXPECT_THAT(say(2, Part::model, folder)[1], HasSubstr("bytes 0 to 3"));
}

}  // namespace
}  // namespace redco::ckpt
