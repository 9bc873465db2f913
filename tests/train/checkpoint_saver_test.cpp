// Saves in the background: what they copy, when they become visible, and what remains after a failure.
#include "train/checkpoint_saver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/syscalls.h"
#include "ckpt/verify_checkpoint.h"
#include "models/spec_builder.h"
#include "ops/create.h"
#include "support/error_text.h"
#include "support/ranks.h"
#include "support/temp_dir.h"
#include "train/checkpoint_files.h"

namespace redco {
namespace {

using redco::testing::on_mesh;
using sys::Call;
using sys::Op;
using sys::Verdict;
using test::TempDir;

class BackgroundSave : public ::testing::Test {
 protected:
  void SetUp() override { set_log_level(LogLevel::error); }
  void TearDown() override {
    blocked = false;
    set_log_level(LogLevel::info);
    sys::set_hook({});
  }
  // Writes of tensors wait until `blocked` is false. The hook may not wait itself: it is called one at a
  // time.
  void block_writes() {
    blocked = true;
    sys::set_hook([this](const Call& c) {
      const bool tensors = c.op == Op::rename && c.to.ends_with(".safetensors");
      return tensors && blocked ? Verdict{Verdict::fail, EINTR} : Verdict{};  // the call is repeated
    });
  }
  static void set_all(const ParamTree& t, u64 key) {
    for (const Tensor& x : t.values()) fill_normal(x, key, 1);
  }
  static ParamTree tree(i64 width, u64 value) {
    ModelParams p;
    SpecBuilder(p).linear("a.fc1", width, 48, true, 1);
    ParamTree t = make_params(p, shard_specs(p.specs, Context::current().mesh().mp()).layouts);
    set_all(t, value);
    return t;
  }
  static CheckpointContents contents(const ParamTree& t) {
    CheckpointContents what{.params = t, .optimizer = {{"exp_avg", t}}, .job_yaml = "train: {}\n"};
    what.run.id = std::string(32, 'a');
    return what;
  }
  static TrainState at(i64 step) { return {.step = step, .global_batch_size = 1, .n_examples = 1}; }
  static std::vector<ckpt::CopyQueue::Size> copy_of(const CheckpointContents& what,
                                                    const CheckpointSettings& settings = {}) {
    return copy_sizes(what, settings, Context::current().world().size());
  }
  static void wait_for(CheckpointSaver& saver) {
    while (saver.in_flight()) {
      saver.poll();
      std::this_thread::yield();
    }
  }
  std::atomic<bool> blocked{false};
};

std::vector<std::string> steps_in(const std::string& folder) {
  std::vector<std::string> out;
  for (const std::string& name : list_dir(folder))
    if (name.starts_with("step-")) out.push_back(name);
  return out;
}

// The step after begin() changes all tensors. The files have the values of begin(), and the bytes of a save
// that is waited for.
TEST_F(BackgroundSave, HasTheValuesOfItsBeginning) {
  for (const Mesh& mesh : {Mesh(1, 1), Mesh(2, 1), Mesh(1, 2), Mesh(2, 2)}) {
    TempDir dir(TempDir::in_memory);
    on_mesh(mesh, [&](Context& c) {
      const ParamTree t = tree(64, 3);
      const CheckpointContents what = contents(t);
      save_checkpoint(dir / "wanted", what, at(10), {"loss"}, 2);
      CheckpointSaver saver(dir / "run/checkpoints", 2, copy_of(what));
      c.world().on_first([&] {
        make_dirs(dir / "run");
        block_writes();
      });
      saver.begin(what, at(10), {"loss"});
      set_all(t, 4);
      EXPECT_TRUE(saver.in_flight());
      for (int k = 0; k < 3; ++k) saver.poll();
      EXPECT_TRUE(saver.in_flight());
      EXPECT_FALSE(saver.has_saved());
      c.world().on_first([&] {
        EXPECT_THAT(steps_in(dir / "run/checkpoints"), ::testing::IsEmpty());
        blocked = false;
      });
      wait_for(saver);
      EXPECT_TRUE(saver.has_saved());
      const auto times = saver.take_times();
      ASSERT_TRUE(times);
      EXPECT_GT(times->save_s, 0);
      EXPECT_LE(times->stall_s, times->save_s);
      EXPECT_FALSE(saver.take_times());
    });
    for (const char* file : {"model.safetensors", "training/optimizer.safetensors", "training/state.json",
                             "training/job.yaml", "training/manifest.json"})
      EXPECT_EQ(test::slurp(dir / "run/checkpoints/best-loss/" + file),
                test::slurp(dir / "wanted/step-00000010/" + file))
          << file;
  }
}

// A lazily unmounted file system leaves another, empty folder under the workdir's path.
TEST_F(BackgroundSave, AnotherFolderInThePlaceOfTheWorkdirIsAnError) {
  TempDir dir(TempDir::in_memory);
  make_dirs(dir / "run");
  on_mesh({2, 1}, [&](Context& c) {
    const ParamTree t = tree(64, 3);
    const CheckpointContents what = contents(t);
    CheckpointSaver saver(dir / "run/checkpoints", 2);
    saver.begin(what, at(10), {});
    saver.finish();
    for (const bool exists : {true, false}) {
      c.world().on_first([&] {
        std::filesystem::rename(dir / "run", dir / (exists ? "there" : "other"));
        if (exists) make_dirs(dir / "run");
      });
      EXPECT_THAT(error_text<IoError>([&] { saver.begin(what, at(20), {}); }),
                  ::testing::HasSubstr("its file system was unmounted"));
    }
    c.world().on_first([&] { EXPECT_FALSE(exists(dir / "run")); });
  });
  EXPECT_THAT(steps_in(dir / "there/checkpoints"), ::testing::ElementsAre("step-00000010"));
}

// The next save waits for the former one, which keeps its own pointers; retention follows.
TEST_F(BackgroundSave, OneIsInFlight) {
  TempDir dir(TempDir::in_memory);
  make_dirs(dir / "run");
  const std::string folder = dir / "run/checkpoints";
  on_mesh({2, 1}, [&](Context& c) {
    const ParamTree t = tree(64, 3);
    const CheckpointContents what = contents(t);
    {
      CheckpointSaver saver(folder, 1, copy_of(what));
      for (const i64 step : {10, 20, 30, 40})
        saver.begin(what, at(step),
                    step == 20 ? std::vector<std::string>{"loss"} : std::vector<std::string>{});
      c.world().on_first([&] { EXPECT_EQ(test::slurp(folder + "/last/training/job.yaml"), "train: {}\n"); });
      EXPECT_TRUE(saver.in_flight());
      saver.finish();
      saver.finish();  // nothing
    }
    c.world().barrier();
  });
  EXPECT_THAT(list_dir(folder),
              ::testing::ElementsAre("best-loss", "last", "step-00000020", "step-00000040"));
  EXPECT_EQ(*read_link(folder + "/best-loss"), "step-00000020");
  EXPECT_EQ(*read_link(folder + "/last"), "step-00000040");
}

// A run that ends in an error drops its save. The older checkpoint stays, and the next save removes the rest.
TEST_F(BackgroundSave, ADroppedOneLeavesTheOlderCheckpoint) {
  TempDir dir(TempDir::in_memory);
  make_dirs(dir / "run");
  const std::string folder = dir / "run/checkpoints";
  on_mesh({1, 1}, [&](Context&) {
    const ParamTree t = tree(64, 3);
    const CheckpointContents what = contents(t);
    save_checkpoint(folder, what, at(10), {}, 1);
    {
      CheckpointSaver saver(folder, 1, copy_of(what));
      saver.begin(what, at(20), {});
    }
    EXPECT_THAT(steps_in(folder), ::testing::ElementsAre("step-00000010"));
    EXPECT_NO_THROW(ckpt::verify_checkpoint(folder + "/last", ckpt::Part::training, "checkpoint.resume"));
    save_checkpoint(folder, what, at(30), {}, 1);
    EXPECT_THAT(list_dir(folder), ::testing::ElementsAre("last", "step-00000030"));
  });
}

// Every call of a save fails once. Each failure is the error of all ranks and leaves the older checkpoint
// alone, or comes after the publish and is a warning.
TEST_F(BackgroundSave, AFaultAtEveryCall) {
  int errors = 0, saved = 0;
  for (int fault = 0, calls = 1; fault < calls; ++fault) {
    TempDir dir(TempDir::in_memory);
    make_dirs(dir / "run");
    const std::string folder = dir / "run/checkpoints";
    std::atomic<int> failed{0}, count{0};
    std::atomic<bool> renamed{false};
    on_mesh({2, 1}, [&](Context& c) {
      const ParamTree t = tree(64, 3);
      const CheckpointContents what = contents(t);
      save_checkpoint(folder, what, at(10), {}, 1);
      c.world().on_first([&] {
        sys::set_hook([&](const Call& call) {
          if (count++ == fault) return Verdict{Verdict::fail, EIO};
          if (call.op == Op::rename && call.to.ends_with("/step-00000020")) renamed = true;
          return call.op == Op::sync ? Verdict{Verdict::skip} : Verdict{};
        });
      });
      {
        CheckpointSaver saver(folder, 1, copy_of(what));
        try {
          saver.begin(what, at(20), {});
          wait_for(saver);
        } catch (const Error& e) {
          EXPECT_EQ(e.code(), ExitCode::io) << e.what();
          ++failed;
        }
        EXPECT_FALSE(saver.in_flight());
      }
      c.world().barrier();
      c.world().on_first([] { sys::set_hook({}); });
      const auto found = ckpt::CheckpointFolder(folder).find_newest("checkpoint.resume");
      EXPECT_EQ(found.step, renamed ? 20 : 10) << "fault " << fault;
      EXPECT_TRUE(renamed || failed > 0) << "fault " << fault;
      EXPECT_NO_THROW(ckpt::verify_checkpoint(found.path, ckpt::Part::training, "checkpoint.resume"));
      c.world().barrier();
      save_checkpoint(folder, what, at(30), {}, 1);
      c.world().on_first(
          [&] { EXPECT_THAT(list_dir(folder), ::testing::ElementsAre("last", "step-00000030")) << fault; });
    });
    EXPECT_TRUE(failed == 0 || failed == 2) << "fault " << fault << ": an error of " << failed << " ranks";
    errors += failed > 0;
    saved += failed == 0;
    calls = std::max(calls, count.load());
  }
  EXPECT_GT(errors, 40);
  EXPECT_GT(saved, 10);
}

// The copy has room for the tensors in the files of each rank, or for as much as the setting allows: then
// begin() waits for the disk, and the files are the same.
TEST_F(BackgroundSave, TheCopyIsBounded) {
  constexpr i64 kWidth = 90'000;  // 17 MiB of weights: 3 windows in each of the two files
  constexpr i64 kFile = kWidth * (48 + 1) * 4, kMost = i64{32} << 20, kWindow = i64{8} << 20;
  TempDir dir(TempDir::in_memory);
  make_dirs(dir / "run");
  on_mesh({1, 1}, [&](Context&) {
    const ParamTree t = tree(kWidth, 3);
    const CheckpointContents what = contents(t);
    using Sizes = std::vector<ckpt::CopyQueue::Size>;
    EXPECT_EQ(copy_sizes(what, {}, 1), (Sizes{{2 * kFile, 6}}));
    EXPECT_EQ(copy_sizes(what, {}, 3), (Sizes{{kFile, 3}, {kFile, 3}, {0, 1}}));
    CheckpointSettings limited;
    limited.async_buffer_mib = kMost >> 20;
    EXPECT_EQ(copy_sizes(what, limited, 2), (Sizes{{kMost - 2 * kWindow, 2}, {kMost - 2 * kWindow, 2}}));
    EXPECT_EQ(copy_sizes(what, limited, 1), (Sizes{{kMost - 2 * kWindow, 2}}));
    CheckpointSaver whole(dir / "run/checkpoints", 5, copy_of(what)),
        part(dir / "run/checkpoints", 5, copy_of(what, limited));
    EXPECT_EQ(whole.copy_bytes(), 2 * kFile + 6 * kWindow);
    EXPECT_EQ(part.copy_bytes(), kMost);
    whole.begin(what, at(10), {});
    whole.finish();
    part.begin(what, at(20), {});
    part.finish();
  });
  for (const char* file : {"/model.safetensors", "/training/optimizer.safetensors"})
    EXPECT_EQ(test::slurp(dir / "run/checkpoints/step-00000010" + file),
              test::slurp(dir / "run/checkpoints/step-00000020" + file));
}

}  // namespace
}  // namespace redco
