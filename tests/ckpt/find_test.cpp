// The checkpoint that a command selects.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <functional>

#include "ckpt/saving.h"
#include "support/error_text.h"

namespace redco::ckpt {
namespace {

using sys::Call;
using sys::Op;
using sys::Verdict;
using test::slurp;
using test::spill;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Find : public Saving {};

TEST_F(Find, OnlyCanonicalStepNamesAreRead) {
  EXPECT_EQ(parse_step_name("step-00000020"), 20);
  EXPECT_EQ(parse_step_name(step_name(1'234'567'890'123)), 1'234'567'890'123);
  for (const char* no : {"step-20", "step-", "step--0000020", "step-00000020x", "step-000000020",
                         "Step-00000020", "", "step-99999999999999999999"})
    EXPECT_EQ(parse_step_name(no), std::nullopt) << no;
}

TEST_F(Find, OnlyUnfinishedAndIncompleteCheckpointsAreSkipped) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  for (i64 step : {20, 30, 40, 50}) save(c, step, static_cast<float>(step), 100);
  auto at = [&](i64 step, const std::string& file) {
    return join_path(join_path(c.path(), step_name(step)), file);
  };
  spill(at(30, "model.safetensors"), slurp(at(30, "model.safetensors")).substr(0, 50));  // truncated
  remove_file(at(40, "training/state.json"));
  remove_file(at(50, kManifestPath));
  make_dirs(c.temp_folder(80));
  make_dirs(dir / "step-backup");
  const auto found = c.find_newest("checkpoint.resume");
  EXPECT_EQ(found.step, 20);
  const std::pair<const char*, const char*> reasons[] = {{"step-00000050", "no training/manifest.json"},
                                                         {"step-00000040", "training/state.json is missing"},
                                                         {"step-00000030", "model.safetensors has 50 bytes"},
                                                         {".tmp-step-00000080", "did not finish"}};
  ASSERT_EQ(found.skipped.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(found.skipped[i].name, reasons[i].first);
    EXPECT_THAT(found.skipped[i].reason, HasSubstr(reasons[i].second));
  }
  // If all are incomplete, there is nothing to resume, and the run must not start over silently.
  remove_file(at(20, "config.json"));
  EXPECT_THAT(
      error_text<ContentsError>([&] { c.find_newest("checkpoint.resume"); }),
      ::testing::AllOf(HasSubstr("no complete checkpoint (step-00000050"), HasSubstr("resume=never")));
}

TEST_F(Find, AnUnfinishedFirstSaveIsNotACheckpoint) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  make_dirs(c.temp_folder(80));
  const auto found = c.find_newest("checkpoint.resume");
  EXPECT_FALSE(found);
  EXPECT_EQ(found.skipped.size(), 1u);
}

TEST_F(Find, ABrokenCheckpointIsAnErrorThatNamesTheOlderCompleteOne) {
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
       [&](auto& f) { spill(f + manifest, slurp(f + "../step-00000020/" + manifest)); },
       "the manifest is of step 20"},
      {"pipe as manifest",
       [&](auto& f) {
         remove_file(f + manifest);
         ASSERT_EQ(::mkfifo((f + manifest).c_str(), 0600), 0);
       },
       "not a plain file"},
      {"folder as manifest",
       [&](auto& f) {
         remove_file(f + manifest);
         make_dirs(f + manifest);
       },
       "not a plain file"},
      {"pipe as file",
       [&](auto& f) {
         remove_file(f + "config.json");
         ASSERT_EQ(::mkfifo((f + "config.json").c_str(), 0600), 0);
       },
       "not a plain file"},
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
      EXPECT_THAT(error_text<ContentsError>(find),
                  ::testing::AllOf(
                      HasSubstr(k.says), HasSubstr("step-00000030/"),
                      HasSubstr("checkpoint.resume=" + dir / "step-00000010" + " uses the newest older")))
          << k.what;
  }
}

TEST_F(Find, ACheckpointThatCannotBeReadIsAnError) {
  TempDir dir(TempDir::in_memory);
  CheckpointFolder c(dir.path());
  for (i64 step : {10, 20}) save(c, step, static_cast<float>(step), 100);
  for (Op op : {Op::open, Op::read, Op::stat}) {
    sys::set_hook([&](const Call& call) {
      const bool hit = call.op == op && call.path == dir / "step-00000020/training/manifest.json";
      return hit ? Verdict{Verdict::fail, EIO} : Verdict{};
    });
    EXPECT_THAT(error_text<IoError>([&] { c.find_newest("checkpoint.resume"); }),
                ::testing::AllOf(HasSubstr("step-00000020/training/manifest.json"),
                                 HasSubstr("checkpoint.resume=" + dir / "step-00000010")))
        << sys::name_of(op);
  }
}

TEST_F(Find, LastIsFollowedAndNewerOnesAreNamed) {
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
  EXPECT_THAT(found.skipped[0].reason, HasSubstr("is gone"));
  remove_file(dir / "last");
  EXPECT_EQ(c.find_last("predict.checkpoint").step, 30);
}

TEST_F(Find, OtherRunsAreNeitherFoundNorPruned) {
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
  // A broken checkpoint of another run is no error for this run, and the advice names only this run's
  // checkpoints.
  spill(dir / "step-00000060/config.json", std::string(100, ' '));
  EXPECT_EQ(as_second.find_newest("checkpoint.resume").step, 50);
  spill(dir / "step-00000050/config.json", std::string(100, ' '));
  spill(dir / "step-00000040/config.json", std::string(100, ' '));
  EXPECT_THAT(error_text<ContentsError>([&] { as_second.find_newest("checkpoint.resume"); }),
              HasSubstr("checkpoint.resume=" + dir / "step-00000020" + " uses"));
  for (const i64 step : {40, 50}) save_as(second, step);
  EXPECT_THAT(as_second.prune(1), ElementsAre(10, 20, 40));
  EXPECT_THAT(as_second.steps(), ElementsAre(30, 50, 60));
}

TEST_F(Find, DanglingPointersAreErrors) {
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
    EXPECT_THAT(e.what(), HasSubstr("Available: best-loss, last"));
  }
  symlink_durable("step-00000009", dir / "gone");
  EXPECT_THROW(c.resolve("gone"), ContentsError);
}

}  // namespace
}  // namespace redco::ckpt
