#include "workdir/run_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/syscalls.h"
#include "support/crash_disk.h"
#include "support/error_text.h"
#include "support/temp_dir.h"

namespace redco {
namespace {

using test::slurp;
using test::spill;
using test::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kOld(32, '1');
const RunRecord kNew{{std::string(32, '2'), {{kOld, 20}}}, "2026-11-22T11:30:00Z", "/runs/x"};
const std::vector<std::string> kNames = {"checkpoints/step-00000040", "metrics.jsonl", "absent", "run.json"};

sys::Verdict no_sync(const sys::Call& c) {
  return c.op == sys::Op::sync ? sys::Verdict{sys::Verdict::skip} : sys::Verdict{};
}

class RunRecords : public ::testing::Test {
 protected:
  void SetUp() override {
    set_log_level(LogLevel::error);
    sys::set_hook(no_sync);
  }
  void TearDown() override {
    set_log_level(LogLevel::info);
    sys::set_hook({});
  }
  // A workdir with an old run.
  void make(const std::string& workdir) {
    make_dirs(workdir + "/checkpoints/step-00000020");
    make_dirs(workdir + "/checkpoints/step-00000040");
    spill(workdir + "/checkpoints/step-00000040/model", "old");
    spill(workdir + "/metrics.jsonl", "old");
    begin_run(workdir, {{kOld, {}}, "then", "", ""}, "", {});
  }
  bool is_old(const std::string& w) {
    return read_run_record(w)->run.id == kOld && exists(w + "/metrics.jsonl") && !exists(w + "/previous") &&
           exists(w + "/checkpoints/step-00000040/model");
  }
  bool is_new(const std::string& w) {
    const std::string moved = w + "/previous/" + kOld;
    return read_run_record(w)->run == kNew.run && !exists(w + "/metrics.jsonl") &&
           exists(moved + "/metrics.jsonl") && exists(moved + "/checkpoints/step-00000040/model") &&
           exists(moved + "/run.json") && exists(w + "/checkpoints/step-00000020") &&
           !exists(w + "/checkpoints/step-00000040") && !exists(w + "/.moving.json");
  }
};

TEST_F(RunRecords, AnOldRunIsMovedAside) {
  TempDir dir(TempDir::in_memory);
  make(dir.path());
  EXPECT_TRUE(is_old(dir.path()));
  EXPECT_EQ(begin_run(dir.path(), kNew, kOld, {kNames, {}}), "previous/" + kOld);
  EXPECT_TRUE(is_new(dir.path()));
  const auto record = read_run_record(dir.path());
  EXPECT_EQ(record->resumed_from, "/runs/x");
  EXPECT_EQ(record->started, kNew.started);
  // A second old run with the same name gets a unique folder; without files to move, no folder is made.
  spill(dir / "metrics.jsonl", "again");
  EXPECT_EQ(begin_run(dir.path(), kNew, kOld, {{"metrics.jsonl"}, {}}), "previous/" + kOld + "-2");
  EXPECT_EQ(begin_run(dir.path(), kNew, kOld, {{"metrics.jsonl"}, {}}), "");
  EXPECT_THAT(list_dir(dir / "previous"), ElementsAre(kOld, kOld + "-2"));
}

// A new run that continues metrics cuts them: the old run keeps a copy.
TEST_F(RunRecords, CopiedFilesStay) {
  TempDir dir(TempDir::in_memory);
  spill(dir / "metrics.jsonl", "1\n2\n");
  EXPECT_EQ(begin_run(dir.path(), kNew, kOld, {{}, {"metrics.jsonl", "absent"}}), "previous/" + kOld);
  EXPECT_EQ(slurp(dir / "metrics.jsonl"), "1\n2\n");
  EXPECT_EQ(slurp(dir / ("previous/" + kOld + "/metrics.jsonl")), "1\n2\n");
  EXPECT_THAT(list_dir(dir / ("previous/" + kOld)), ElementsAre("metrics.jsonl"));
}

TEST_F(RunRecords, ABadFileIsAnError) {
  TempDir dir(TempDir::in_memory);
  EXPECT_EQ(read_run_record(dir.path()), std::nullopt);
  for (const char* text : {"", "{", "[]", "{\"format_version\": 2}",
                           "{\"format_version\": 1, \"id\": \"x\", \"lineage\": []}"}) {
    spill(dir / "run.json", text);
    EXPECT_THAT(error_text<ContentsError>([&] { read_run_record(dir.path()); }), HasSubstr("run.json"))
        << text;
  }
}

TEST_F(RunRecords, AKillAtEveryCallIsCompletedByTheNextStart) {
  for (int n = 1;; ++n) {
    ASSERT_LT(n, 200);
    TempDir dir(TempDir::in_memory);
    make(dir.path());
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      sys::set_hook([&, seen = 0](const sys::Call& c) mutable {
        return ++seen == n ? sys::Verdict{sys::Verdict::kill} : no_sync(c);
      });
      begin_run(dir.path(), kNew, kOld, {kNames, {}});
      ::_exit(0);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    finish_move(dir.path());
    EXPECT_NE(is_old(dir.path()), is_new(dir.path())) << "killed at call " << n;
    if (WIFEXITED(status)) {
      EXPECT_TRUE(is_new(dir.path()));
      EXPECT_GT(n, 25);
      return;
    }
  }
}

TEST_F(RunRecords, APowerLossAtEveryCallIsCompletedByTheNextStart) {
  TempDir dir(TempDir::in_memory), states(TempDir::in_memory);
  make(dir.path());
  std::vector<test::CrashDisk::State> found;
  {
    test::CrashDisk disk(dir.path(), states.path(), no_sync);
    begin_run(dir.path(), kNew, kOld, {kNames, {}});
    found = disk.states();
  }
  sys::set_hook(no_sync);
  EXPECT_GT(found.size(), 30u);
  for (const auto& state : found) {
    finish_move(state.folder);
    EXPECT_NE(is_old(state.folder), is_new(state.folder)) << state.when;
  }
}

TEST_F(RunRecords, EachStartHasANumberAndFencesFormerOnes) {
  TempDir dir(TempDir::in_memory);
  begin_run(dir.path(), kNew, "", {});
  const ckpt::RunIdentity first = begin_start(dir.path(), 0);
  EXPECT_EQ(first.start, 1);
  require_newest_start(dir.path(), first);
  const ckpt::RunIdentity second = begin_start(dir.path(), 20);
  EXPECT_EQ(second.start, 2);
  require_newest_start(dir.path(), second);
  EXPECT_THAT(error_text<Error>([&] { require_newest_start(dir.path(), first); }),
              HasSubstr("start 2 of this run has taken over " + dir.path() +
                        ". This process belongs to start 1, so it saves nothing more and ends"));
  EXPECT_EQ(read_run_record(dir.path())->run, second);
  // Another run in the workdir.
  begin_run(dir.path(), {{std::string(32, '3'), {}}, "then", "", ""}, "", {});
  EXPECT_THAT(error_text<Error>([&] { require_newest_start(dir.path(), second); }),
              HasSubstr("another run has taken over"));
  require_newest_start(dir.path(), kNew.run);  // of an older version, without a number
}

TEST(RunIdentity, CheckpointsOfAFormerStartCountOnlyBeforeALaterOneBegan) {
  ckpt::RunIdentity run{std::string(32, '1'), {{std::string(32, '2'), 5}}};
  const auto maker = [&](i64 start) {
    ckpt::RunIdentity m = run;
    m.start = start;
    m.starts.clear();
    return m;
  };
  run.begin_start(0);
  run.begin_start(20);
  run.begin_start(40);
  run.begin_start(30);
  EXPECT_EQ(run.start, 4);
  EXPECT_EQ(run.starts, (std::vector<ckpt::RunIdentity::Start>{{1, 0}, {2, 20}, {4, 30}}));
  EXPECT_TRUE(run.holds(maker(1), 20));
  EXPECT_FALSE(run.holds(maker(1), 25));
  EXPECT_TRUE(run.holds(maker(2), 30));
  EXPECT_FALSE(run.holds(maker(2), 35));
  EXPECT_FALSE(run.holds(maker(3), 45));
  EXPECT_TRUE(run.holds(maker(4), 1000));
  EXPECT_TRUE(run.holds(maker(0), 1000));  // of an older version
  EXPECT_TRUE(run.holds({std::string(32, '2'), {}}, 5));
  EXPECT_FALSE(run.holds({std::string(32, '2'), {}}, 6));
  EXPECT_EQ(ckpt::parse_run_identity(ckpt::to_json(run), "x"), run);
  for (const char* bad :
       {R"("start": -1)", R"("starts": {})", R"("starts": [{"start": 1}])", R"("starts": [3])"})
    EXPECT_THAT(error_text<ContentsError>([&] {
                  ckpt::parse_run_identity(
                      nlohmann::json::parse(std::string(R"({"id": "", "lineage": [], )") + bad + "}"), "x");
                }),
                HasSubstr("expected"))
        << bad;
}

}  // namespace
}  // namespace redco
