#include "ckpt/publish.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/syscalls.h"
#include "ckpt/model_files.h"
#include "ckpt/safetensors_write.h"
#include "support/crash_disk.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using sys::Call;
using sys::Op;
using sys::Verdict;
using test::slurp;
using test::spill;
using test::TempDir;
using testing::ElementsAre;
using testing::HasSubstr;

// The disk isn't waited for: what it would hold is CrashDisk's business, and a killed process loses nothing
// it wrote.
Verdict no_sync(const Call& c) { return c.op == Op::sync ? Verdict{Verdict::skip} : Verdict{}; }

class Publish : public testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::error);  // hundreds of failures are warned of
    sys::set_hook(no_sync);
  }
  void TearDown() override {
    set_log_level(LogLevel::info);
    sys::set_hook({});
  }
};

const std::map<std::string, i64> kVersions = {{"rng", 1}, {"shuffle", 1}, {"packing", 1}, {"init", 1}};

// A save as a trainer makes it: `value` is what the weights hold, so that old and new can be told apart.
void write_files(const std::string& temp, float value, std::vector<FileRecord>* records) {
  FilePlan plan = plan_file("model.safetensors", {{"w", StoredType::f32, {4}}, {"b", StoredType::bf16, {2}}});
  auto w = SafetensorsWriter::create(temp, plan);
  std::vector<float> v(4, value);
  w.write("w", {{0, 4}}, v.data());
  w.write("b", {{0, 2}}, v.data());
  w.commit();
  records->push_back(record_file(temp, "model.safetensors"));
  write_file_durable(join_path(temp, "config.json"), fmt::format("{{\"value\": {}}}", value));
  write_file_durable(join_path(temp, "training/state.json"), "{}");
  spill(join_path(temp, "vocab.txt"), "a");  // copied by something that syncs nothing
}

void save(CheckpointFolder& c, i64 step, float value, i64 keep_last = 1) {
  std::vector<FileRecord> records;
  write_files(c.begin(step, 1000), value, &records);
  c.publish(step, kVersions, records);
  c.point("last", step);
  c.point("best-loss", step);
  c.prune(keep_last);
}

float value_of(const std::string& checkpoint) {
  ModelFiles m = ModelFiles::open(checkpoint);
  return m.at("w").file->read<float>(*m.at("w").entry)[3];
}

// What is wrong with a checkpoint's bytes; "": nothing.
std::string damage(const std::string& path) {
  try {
    const Manifest m = read_manifest(path);
    if (const auto missing = missing_bytes(path, m)) return *missing;
    for (const FileRecord& f : m.files)
      for (i64 i = 0; i < m.chunks_of(f); ++i) check_chunk(path, m, f, i);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// The newest whole checkpoint, which `last` must also lead to in some whole state; -1: none.
float found_value(const std::string& folder) {
  const auto found = CheckpointFolder(folder).find_newest("checkpoint.resume");
  if (!found) return -1;
  EXPECT_EQ(damage(found.path), "");
  return value_of(found.path);
}

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
  ASSERT_EQ(found.manifest.files.size(), 4u);  // the three that nobody recorded too
  EXPECT_EQ(found.manifest.files[0], record_file(found.path, "config.json"));
  EXPECT_EQ(c.resolve("best-loss"), found.path);
  EXPECT_EQ(value_of(c.resolve("last")), 1.5F);
}

TEST_F(Publish, StepNamesAreReadOnlyAsTheyAreWritten) {
  EXPECT_EQ(parse_step_name("step-00000020"), 20);
  EXPECT_EQ(parse_step_name(step_name(1'234'567'890'123)), 1'234'567'890'123);
  for (const char* no : {"step-20", "step-", "step--0000020", "step-00000020x", "step-000000020",
                         "Step-00000020", "", "step-99999999999999999999"})
    EXPECT_EQ(parse_step_name(no), std::nullopt) << no;
}

TEST_F(Publish, OnlyUnfinishedAndIncompleteCheckpointsAreSkipped) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  for (i64 step : {20, 30, 40, 50}) save(c, step, static_cast<float>(step), 100);
  auto at = [&](i64 step, const std::string& file) {
    return join_path(join_path(c.path(), step_name(step)), file);
  };
  spill(at(30, "model.safetensors"), slurp(at(30, "model.safetensors")).substr(0, 50));  // cut
  remove_file(at(40, "training/state.json"));
  remove_file(at(50, kManifestPath));
  make_dirs(c.temp_folder(80));
  make_dirs(dir / "step-backup");
  const auto found = c.find_newest("checkpoint.resume");
  EXPECT_EQ(found.step, 20);
  const std::pair<const char*, const char*> reasons[] = {{"step-00000050", "no training/manifest.json"},
                                                         {"step-00000040", "training/state.json is missing"},
                                                         {"step-00000030", "model.safetensors has 50 bytes"},
                                                         {".tmp-step-00000080", "not finished"}};
  ASSERT_EQ(found.skipped.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found.skipped[i].name, reasons[i].first);
    EXPECT_THAT(found.skipped[i].reason, HasSubstr(reasons[i].second));
  }
  // Where all are incomplete there is nothing to resume, and no reason to start again unasked.
  remove_file(at(20, "config.json"));
  EXPECT_THAT(error_text<ContentsError>([&] { c.find_newest("checkpoint.resume"); }),
              testing::AllOf(HasSubstr("no whole checkpoint (step-00000050"), HasSubstr("resume=never")));
}

TEST_F(Publish, AnUnfinishedFirstSaveIsNoCheckpoint) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  make_dirs(c.temp_folder(80));
  const auto found = c.find_newest("checkpoint.resume");
  EXPECT_FALSE(found);
  EXPECT_EQ(found.skipped.size(), 1u);
}

TEST_F(Publish, ABrokenCheckpointIsAnErrorThatNamesTheOlderWholeOne) {
  const std::string manifest = kManifestPath;
  struct Case {
    const char* what;
    std::function<void(const std::string& folder)> damage;
    const char* says;
  };
  const Case cases[] = {
      {"cut manifest", [&](auto& f) { spill(f + manifest, slurp(f + manifest).substr(0, 100)); },
       "not valid"},
      {"empty manifest", [&](auto& f) { spill(f + manifest, ""); }, "not valid JSON"},
      {"newer format",
       [&](auto& f) {
         std::string text = slurp(f + manifest);
         spill(f + manifest, text.replace(text.find(": 2,"), 4, ": 9,"));
       },
       "format_version is 9"},
      {"manifest of another step",
       [&](auto& f) { spill(f + manifest, slurp(f + "../step-00000020/" + manifest)); }, "it is of step 20"},
      {"pipe as manifest",
       [&](auto& f) {
         remove_file(f + manifest);
         ASSERT_EQ(::mkfifo((f + manifest).c_str(), 0600), 0);
       },
       "no plain file"},
      {"folder as manifest",
       [&](auto& f) {
         remove_file(f + manifest);
         make_dirs(f + manifest);
       },
       "no plain file"},
      {"pipe as file",
       [&](auto& f) {
         remove_file(f + "config.json");
         ASSERT_EQ(::mkfifo((f + "config.json").c_str(), 0600), 0);
       },
       "no plain file"},
      {"longer file", [&](auto& f) { spill(f + "config.json", std::string(1000, ' ')); }, "1000 bytes"},
  };
  for (const Case& k : cases) {
    TempDir dir(TempDir::in_memory);
    CheckpointFolder c(dir.path());
    for (i64 step : {10, 20, 30}) save(c, step, static_cast<float>(step), 100);
    remove_file(join_path(c.path(), "step-00000020/config.json"));
    k.damage(dir / "step-00000030/");
    for (const auto& find : {std::function([&] { c.find_newest("checkpoint.resume"); }),
                             std::function([&] { c.find_last("checkpoint.resume"); })})
      EXPECT_THAT(
          error_text<ContentsError>(find),
          testing::AllOf(HasSubstr(k.says), HasSubstr("step-00000030/"),
                         HasSubstr("checkpoint.resume=" + dir / "step-00000010" + " takes the newest older")))
          << k.what;
  }
}

TEST_F(Publish, ACheckpointThatCannotBeReadIsAnError) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  for (i64 step : {10, 20}) save(c, step, static_cast<float>(step), 100);
  for (Op op : {Op::open, Op::read, Op::stat}) {
    sys::set_hook([&](const Call& call) {
      const bool hit = call.op == op && call.path == dir / "step-00000020/training/manifest.json";
      return hit ? Verdict{Verdict::fail, EIO} : Verdict{};
    });
    EXPECT_THAT(error_text<IoError>([&] { c.find_newest("checkpoint.resume"); }),
                testing::AllOf(HasSubstr("step-00000020/training/manifest.json"),
                               HasSubstr("checkpoint.resume=" + dir / "step-00000010")))
        << sys::name_of(op);
  }
}

TEST_F(Publish, LastIsFollowedAndNewerOnesAreNamed) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  for (i64 step : {10, 20, 30}) save(c, step, static_cast<float>(step), 100);
  EXPECT_EQ(c.find_last("predict.checkpoint").newer, "");
  c.point("last", 20);
  auto found = c.find_last("predict.checkpoint");
  EXPECT_EQ(found.step, 20);
  EXPECT_EQ(found.newer, "step-00000030");
  remove_file(dir / "step-00000020/config.json");
  found = c.find_last("predict.checkpoint");
  EXPECT_EQ(found.step, 30);
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_THAT(found.skipped[0].reason, HasSubstr("config.json is missing"));
  remove_tree(dir / "step-00000020");
  found = c.find_last("predict.checkpoint");
  EXPECT_EQ(found.step, 30);
  ASSERT_EQ(found.skipped.size(), 1u);
  EXPECT_THAT(found.skipped[0].reason, HasSubstr("it is gone"));
  remove_file(dir / "last");
  EXPECT_EQ(c.find_last("predict.checkpoint").step, 30);
}

TEST_F(Publish, OtherRunsAreNeitherFoundNorPruned) {
  TempDir dir(TempDir::in_memory);
  const RunIdentity first{new_run_id(), {}}, second = first.child(20), other{new_run_id(), {}};
  const auto save_as = [&](const RunIdentity& run, i64 step) {
    CheckpointFolder c(dir.path(), run);
    std::vector<FileRecord> records;
    write_files(c.begin(step, 0), 1, &records);
    c.publish(step, kVersions, records);
  };
  for (const i64 step : {10, 20, 30}) save_as(first, step);
  for (const i64 step : {40, 50}) save_as(second, step);
  save_as(other, 60);
  const CheckpointFolder as_first(dir.path(), first), as_other(dir.path(), other),
      as_none(dir.path(), RunIdentity{new_run_id(), {}});
  CheckpointFolder as_second(dir.path(), second);
  EXPECT_EQ(as_first.find_newest("checkpoint.resume").step, 30);
  EXPECT_EQ(as_other.find_newest("checkpoint.resume").step, 60);
  EXPECT_FALSE(as_none.find_newest("checkpoint.resume"));
  const auto found = as_second.find_newest("checkpoint.resume");
  EXPECT_EQ(found.step, 50);
  EXPECT_EQ(found.manifest.run, second);
  EXPECT_EQ(second.lineage, (std::vector<RunIdentity::Ancestor>{{first.id, 20}}));
  // A broken checkpoint of another run is no error of this one; its remedy is of this run.
  spill(dir / "step-00000060/config.json", std::string(100, ' '));
  EXPECT_EQ(as_second.find_newest("checkpoint.resume").step, 50);
  spill(dir / "step-00000050/config.json", std::string(100, ' '));
  spill(dir / "step-00000040/config.json", std::string(100, ' '));
  EXPECT_THAT(error_text<ContentsError>([&] { as_second.find_newest("checkpoint.resume"); }),
              HasSubstr("checkpoint.resume=" + dir / "step-00000020" + " takes"));
  for (const i64 step : {40, 50}) save_as(second, step);
  EXPECT_THAT(as_second.prune(1), ElementsAre(10, 20, 40));
  EXPECT_THAT(as_second.steps(), ElementsAre(30, 50, 60));
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
  // A reader that was killed left its lease: it goes when it is stale.
  const std::string left = dir / ".lease-step-00000030-x";
  spill(left, "process 7 on node9\n");
  c.clean_up();
  EXPECT_TRUE(exists(left));
  const struct timespec old[2] = {{1, 0}, {1, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, left.c_str(), old, 0), 0);
  c.clean_up();
  EXPECT_THAT(list_dir(dir.path()), ElementsAre("best-loss", "last", "step-00000030"));
}

// NFS keeps a file that somebody has open as .nfs*, and its folder can't be removed.
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

TEST_F(Publish, PruningKeepsTheNewestWholeOnesAndWhatPointersName) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  for (i64 step : {10, 20, 30, 40, 50}) save(c, step, 1, 100);
  c.point("best-loss", 20);
  spill(dir / "step-00000040/config.json", "cut");
  spill(dir / "step-00000010/config.json", "cut");
  EXPECT_THAT(
      c.prune(2),
      ElementsAre(10));  // 50 and 30 are the whole ones; 40 is damaged, but newer than 30; 20 is named
  EXPECT_THAT(c.steps(), ElementsAre(20, 30, 40, 50));
  EXPECT_THAT(c.prune(1), ElementsAre(30, 40));
  EXPECT_THAT(c.steps(), ElementsAre(20, 50));
  c.point("best-loss", 50);
  EXPECT_THAT(c.prune(1), ElementsAre(20));
  EXPECT_THROW(c.prune(0), BugError);
}

TEST_F(Publish, PruningNeverRemovesTheOnlyWholeOne) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  for (i64 step : {10, 20, 30}) save(c, step, 1, 100);
  spill(dir / "step-00000020/config.json", "cut");
  spill(dir / "step-00000030/config.json", "cut");
  EXPECT_TRUE(c.prune(1).empty());  // 30 is named by pointers, 20 is newer than the only whole one
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

TEST_F(Publish, ADiskThatIsTooSmallIsToldBeforeAnythingIsBegun) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  try {
    c.begin(5, i64{1} << 62);
    FAIL();
  } catch (const IoError& e) {
    EXPECT_THAT(e.what(), testing::AllOf(HasSubstr("step 5 needs"), HasSubstr("are free")));
  }
  EXPECT_TRUE(list_dir(dir.path()).empty());
}

TEST_F(Publish, PointersThatLeadNowhereSaySo) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  save(c, 5, 1);
  for (const char* bad : {"", ".x", "a/b", "..", "step-00000005", "a b", "a\n"})
    EXPECT_THROW(c.point(bad, 5), UsageError) << bad;
  EXPECT_THROW(c.point("last", 6), IoError);
  symlink_durable("../../etc", dir / "evil");
  EXPECT_THROW(c.resolve("evil"), UsageError);
  try {
    c.resolve("best-rougeL");
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_THAT(e.what(), HasSubstr("there are: best-loss, last"));
  }
  symlink_durable("step-00000009", dir / "gone");
  EXPECT_THROW(c.resolve("gone"), ContentsError);
}

struct Scenario {
  const char* name;
  i64 step;           // saved over an old checkpoint of step 10 that holds 1
  bool can_exchange;  // of the file system
};
const Scenario kScenarios[] = {
    {"next", 20, true}, {"again", 10, true}, {"again without exchange", 10, false}};

Verdict unless_exchange(const Scenario& s, const Call& c) {
  return c.op == Op::rename && c.creates && !s.can_exchange ? Verdict{Verdict::fail, EINVAL} : no_sync(c);
}

// Old or new, whole, and reachable by the pointers; then the save is repeated and leaves nothing behind.
void expect_recovers(const std::string& folder, const Scenario& s, const std::string& when, bool repeat) {
  float value = found_value(folder);
  EXPECT_TRUE(value == 1 || value == 2) << s.name << ", " << when << ": " << value;
  CheckpointFolder c(folder);
  for (const char* pointer : {"last", "best-loss"}) {
    float pointed = value_of(c.resolve(pointer));
    EXPECT_TRUE(pointed == 1 || pointed == 2) << s.name << ", " << when << ": " << pointed;
  }
  for (i64 step : c.steps()) {  // none is seen half removed
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
    EXPECT_GT(n, 60);  // the save makes that many calls at least, else the hook doesn't see them
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
        } catch (const IoError&) {  // a failed close of a file that was only read may be ignored
        }
        finished = seen < n;
        sys::set_hook(no_sync);
        expect_recovers(dir.path(), s, fmt::format("failed at call {}", n), true);
      }
    }
  }
}

TEST_F(Publish, ALossOfPowerAtEveryCallLosesNothing) {
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
