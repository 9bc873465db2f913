#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "ckpt/saving.h"
#include "support/crash_disk.h"
#include "support/error_text.h"

namespace redco::ckpt {
namespace {

using sys::Call;
using sys::Op;
using sys::Verdict;
using test::spill;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Publish : public Saving {};

std::vector<std::string> all_names(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& e : std::filesystem::recursive_directory_iterator(folder))
    names.push_back(e.path().lexically_relative(folder));
  std::sort(names.begin(), names.end());
  return names;
}

TEST_F(Publish, ASaveIsAHuggingFaceFolderWithAManifestAndPointers) {
  TempDir dir(TempDir::in_memory);
  make_dirs(dir / "work");
  CheckpointFolder c(dir / "work/checkpoints");
  EXPECT_FALSE(c.find_newest("checkpoint.resume"));
  EXPECT_TRUE(c.pointers().empty());
  save(c, 20, 1.5F);
  EXPECT_THAT(all_names(c.path()),
              ElementsAre("best-loss", "last", "step-00000020", "step-00000020/config.json",
                          "step-00000020/model.safetensors", "step-00000020/training",
                          "step-00000020/training/manifest.json", "step-00000020/training/state.json",
                          "step-00000020/vocab.txt"));
  EXPECT_EQ(read_link(join_path(c.path(), "last")), "step-00000020");
  auto found = c.find_newest("checkpoint.resume");
  ASSERT_TRUE(found);
  EXPECT_EQ(found.step, 20);
  EXPECT_EQ(found.manifest.versions, kVersions);
  ASSERT_EQ(found.manifest.files.size(), 4u);  // includes the three files without a record
  EXPECT_EQ(found.manifest.files[0], record_file(found.path, "config.json"));
  EXPECT_EQ(c.resolve("best-loss"), found.path);
  EXPECT_EQ(value_of(c.resolve("last")), 1.5F);
}

TEST_F(Publish, ACheckpointThatIsReadIsNotRemoved) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  for (const i64 step : {10, 20, 30}) save(c, step, 1, 100);
  EXPECT_EQ(hold_checkpoint(dir.path()), nullptr);
  EXPECT_EQ(hold_checkpoint(dir / "nowhere"), nullptr);
  {
    const auto lease = hold_checkpoint(dir / "step-00000010");
    ASSERT_NE(lease, nullptr);
    c.clean_up();
    EXPECT_THAT(c.prune(1), ElementsAre(20));
  }
  EXPECT_THAT(c.prune(1), ElementsAre(10));
  // A killed reader left its lease, which is removed when it is stale.
  const std::string left = dir / ".lease-step-00000030-x";
  spill(left, "process 7 on node9\n");
  c.clean_up();
  EXPECT_TRUE(exists(left));
  const struct timespec old[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, left.c_str(), old, 0), 0);
  c.clean_up();
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("best-loss", "last", "step-00000030"));
}

// NFS keeps open files as .nfs*, and their folder can't be removed.
TEST_F(Publish, WhatCannotBeRemovedStaysInTheTrashUntilTheNextCleanUp) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  save(c, 10, 1);
  sys::set_hook([](const Call& call) {
    const bool hit = call.op == Op::unlink && call.path.find(".trash-") != std::string::npos;
    return hit ? Verdict{Verdict::fail, ENOTEMPTY} : no_sync(call);
  });
  save(c, 20, 2);
  EXPECT_THAT(list_dir(dir.path()),
              ElementsAre(".trash-step-00000010-0", "best-loss", "last", "step-00000020"));
  sys::set_hook(no_sync);
  EXPECT_EQ(found_value(dir.path()), 2);
  save(c, 30, 3);
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("best-loss", "last", "step-00000030"));
}

TEST_F(Publish, AWorkdirThatIsGoneIsAnIoError) {
  TempDir dir(TempDir::in_memory);
  make_dirs(dir / "work");
  CheckpointFolder c(dir / "work/checkpoints");
  save(c, 10, 1);
  std::vector<FileRecord> records;
  write_files(c.begin(20, 0), 2, &records);
  remove_tree(c.temp_folder(20));
  EXPECT_THAT(error_text<IoError>([&] { c.publish(20, kVersions, records); }), HasSubstr("moved or removed"));
  make_dirs(c.temp_folder(20));
  EXPECT_THAT(error_text<IoError>([&] { c.publish(20, kVersions, records); }), HasSubstr("is gone"));
  remove_tree(dir / "work");
  EXPECT_THAT(error_text<IoError>([&] { c.publish(20, kVersions, records); }), HasSubstr("moved or removed"));
  EXPECT_THAT(error_text<IoError>([&] { c.begin(30, 0); }), HasSubstr(dir / "work is gone"));
  EXPECT_THROW(c.point("last", 10), IoError);
  EXPECT_FALSE(exists(dir / "work"));
}

TEST_F(Publish, PruningKeepsTheNewestCompleteOnesAndThoseWithPointers) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  for (i64 step : {10, 20, 30, 40, 50}) save(c, step, 1, 100);
  c.point("best-loss", 20);
  spill(dir / "step-00000040/config.json", "cut");
  spill(dir / "step-00000010/config.json", "cut");
  EXPECT_THAT(c.prune(2),
              ElementsAre(10));  // 50 and 30 are complete; 40 is damaged, but newer than 30; 20 has a pointer
  EXPECT_THAT(c.steps(), ElementsAre(20, 30, 40, 50));
  EXPECT_THAT(c.prune(1), ElementsAre(30, 40));
  EXPECT_THAT(c.steps(), ElementsAre(20, 50));
  c.point("best-loss", 50);
  EXPECT_THAT(c.prune(1), ElementsAre(20));
  EXPECT_THROW(c.prune(0), BugError);
}

TEST_F(Publish, PruningNeverRemovesTheOnlyCompleteOne) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  for (i64 step : {10, 20, 30}) save(c, step, 1, 100);
  spill(dir / "step-00000020/config.json", "cut");
  spill(dir / "step-00000030/config.json", "cut");
  EXPECT_TRUE(c.prune(1).empty());  // 30 has pointers, 20 is newer than the only complete one
  EXPECT_EQ(c.find_newest("checkpoint.resume").step, 10);
}

TEST_F(Publish, AStepSavedAgainReplacesTheOldOneWithAndWithoutExchange) {
  for (bool can_exchange : {true, false}) {
    TempDir dir(TempDir::in_memory);
    CheckpointFolder c(dir.path());
    sys::set_hook([&](const Call& call) {
      return call.op == Op::rename && call.creates && !can_exchange ? Verdict{Verdict::fail, EINVAL}
                                                                    : no_sync(call);
    });
    save(c, 20, 1);
    save(c, 20, 2);
    sys::set_hook(no_sync);
    EXPECT_EQ(found_value(dir.path()), 2);
    EXPECT_THAT(list_dir(dir.path()), ElementsAre("best-loss", "last", "step-00000020"));
  }
}

TEST_F(Publish, AFileThatChangedAfterItWasRecordedStopsThePublishing) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  std::vector<FileRecord> records;
  std::string temp = c.begin(5, 0);
  write_files(temp, 1, &records);
  spill(join_path(temp, "model.safetensors"), "cut");
  EXPECT_THROW(c.publish(5, kVersions, records), IoError);
  EXPECT_FALSE(c.find_newest("checkpoint.resume"));
  c.abandon(5);
  EXPECT_TRUE(list_dir(dir.path()).empty());
}

TEST_F(Publish, ADiskThatIsTooSmallIsAnErrorBeforeTheSave) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  try {
    c.begin(5, i64{1} << 62);
    FAIL();
  } catch (const IoError& e) {
    EXPECT_THAT(e.what(), ::testing::AllOf(HasSubstr("step 5 needs"), HasSubstr("are free")));
  }
  EXPECT_TRUE(list_dir(dir.path()).empty());
}

struct Scenario {
  const char* name;
  i64 step;           // replaces an old checkpoint of step 10 with the value 1
  bool can_exchange;  // of the file system
};
const Scenario kScenarios[] = {
    {"next", 20, true}, {"again", 10, true}, {"again without exchange", 10, false}};

Verdict unless_exchange(const Scenario& s, const Call& c) {
  return c.op == Op::rename && c.creates && !s.can_exchange ? Verdict{Verdict::fail, EINVAL} : no_sync(c);
}

// Old or new, complete, and reachable by the pointers; the repeated save leaves no leftovers.
void expect_recovers(const std::string& folder, const Scenario& s, const std::string& when, bool repeat) {
  float value = found_value(folder);
  EXPECT_TRUE(value == 1 || value == 2) << s.name << ", " << when << ": " << value;
  CheckpointFolder c(folder);
  for (const char* pointer : {"last", "best-loss"}) {
    float pointed = value_of(c.resolve(pointer));
    EXPECT_TRUE(pointed == 1 || pointed == 2) << s.name << ", " << when << ": " << pointed;
  }
  for (i64 step : c.steps()) {  // no checkpoint is visible while it is removed
    std::string path = join_path(folder, step_name(step));
    if (!is_folder(path)) path = join_path(folder, ".old-" + step_name(step));
    ASSERT_TRUE(exists(join_path(path, kManifestPath))) << s.name << ", " << when << ": " << path;
    EXPECT_EQ(damage(path), "") << s.name << ", " << when;
  }
  if (!repeat) return;
  save(c, s.step, 2);
  EXPECT_EQ(found_value(folder), 2) << s.name << ", " << when;
  EXPECT_THAT(list_dir(folder), ElementsAre("best-loss", "last", step_name(s.step)))
      << s.name << ", " << when;
}

TEST_F(Publish, AKillAtEveryCallLosesNothing) {
  for (const Scenario& s : kScenarios) {
    int n = 1;
    for (bool finished = false; !finished; ++n) {
      ASSERT_LT(n, 1000);
      TempDir dir(TempDir::in_memory);
      CheckpointFolder c(dir.path());
      save(c, 10, 1);
      pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        sys::set_hook([&, seen = 0](const Call& call) mutable {
          return ++seen == n ? Verdict{Verdict::kill} : unless_exchange(s, call);
        });
        save(c, s.step, 2);
        ::_exit(0);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      ASSERT_TRUE(finished || WIFSIGNALED(status));
      expect_recovers(dir.path(), s, fmt::format("killed at call {}", n), true);
    }
    EXPECT_GT(n, 60);  // the save makes at least this many calls, otherwise the hook misses them
  }
}

TEST_F(Publish, AFailureAtEveryCallLosesNothing) {
  for (int error : {EIO, ENOSPC}) {
    for (const Scenario& s : kScenarios) {
      int n = 1;
      for (bool finished = false; !finished; ++n) {
        ASSERT_LT(n, 1000);
        TempDir dir(TempDir::in_memory);
        CheckpointFolder c(dir.path());
        save(c, 10, 1);
        int seen = 0;
        sys::set_hook([&](const Call& call) {
          return ++seen == n ? Verdict{Verdict::fail, error} : unless_exchange(s, call);
        });
        try {
          save(c, s.step, 2);
        } catch (const IoError&) {  // a failed close of a read-only file may be ignored
        }
        finished = seen < n;
        sys::set_hook(no_sync);
        expect_recovers(dir.path(), s, fmt::format("failed at call {}", n), true);
      }
    }
  }
}

TEST_F(Publish, APowerLossAtEveryCallLosesNothing) {
  for (const Scenario& s : kScenarios) {
    TempDir dir(TempDir::in_memory), states(TempDir::in_memory);
    CheckpointFolder c(dir.path());
    save(c, 10, 1);
    std::vector<test::CrashDisk::State> found;
    {
      test::CrashDisk disk(dir.path(), states.path(),
                           [&](const Call& call) { return unless_exchange(s, call); });
      save(c, s.step, 2);
      found = disk.states();
    }
    sys::set_hook(no_sync);
    EXPECT_GT(found.size(), 90u);
    int i = 0;
    for (const auto& state : found) expect_recovers(state.folder, s, state.when, ++i % 7 == 0);
  }
}

}  // namespace
}  // namespace redco::ckpt
