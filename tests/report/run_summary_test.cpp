// redco runs: what a folder of runs holds, without reading much of it.
#include "report/run_summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/timing.h"
#include "report/page_testing.h"

namespace redco::test {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class RunSummaries : public PageTest {
 protected:
  void add_run(const std::string& name) {
    write(name + "/history.jsonl", event({{"event", "start"},
                                          {"step", 0},
                                          {"total_steps", 30},
                                          {"pipeline", "lm"},
                                          {"model", "preset tiny"}}));
    write(name + "/metrics.jsonl",
          line(10, 3) + line(20, 2.5) + "{\"step\":20,\"eval_loss\":2.75,\"time\":1700000021}\n");
    write(name + "/best.json", R"({"eval_loss": {"value": 2.75, "step": 20}})");
  }
};

TEST_F(RunSummaries, TellStateStepMetricsAndSize) {
  add_run("a");
  RunSummary r = summarize_run(dir_ / "a", "");
  EXPECT_EQ(r.state.kind, RunState::Kind::killed);
  EXPECT_EQ(r.pipeline, "lm");
  EXPECT_EQ(r.model, "preset tiny");
  EXPECT_EQ(r.step, 20);
  EXPECT_EQ(r.total_steps, 30);
  EXPECT_EQ(r.loss, 2.5);  // of the newest line that has one
  EXPECT_EQ(r.time, 1700000021);
  ASSERT_EQ(r.best.size(), 1u);
  EXPECT_EQ(r.best["eval_loss"].value, 2.75);
  EXPECT_EQ(r.best["eval_loss"].step, 20);
  EXPECT_THAT(r.problems, IsEmpty());
  i64 bytes = 0;
  for (const auto& f : std::filesystem::recursive_directory_iterator(dir_ / "a")) bytes += i64(f.file_size());
  EXPECT_EQ(r.bytes, bytes);
  EXPECT_EQ(summarize_run(dir_ / "a", "process 1 on node1").state.kind, RunState::Kind::running);
  // The end tells the step also where not every step is logged.
  write("a/history.jsonl", event({{"event", "start"}, {"step", 0}, {"total_steps", 30}}) +
                               event({{"event", "stopped"}, {"step", 27}, {"reason", "SIGINT"}}));
  EXPECT_EQ(summarize_run(dir_ / "a", "").step, 27);
}

TEST_F(RunSummaries, NameDamagedFiles) {
  const auto problems = [&](const std::string& name, const std::string& text) {
    std::filesystem::remove_all(dir_ / "a");
    add_run("a");
    write("a/" + name, text);
    const auto all = summarize_run(dir_ / "a", "").problems;
    EXPECT_EQ(all.size(), 1u) << name;
    return all.empty() ? "" : all[0];
  };
  EXPECT_THAT(problems("best.json", "{\"eval_loss\": 3}"), HasSubstr("best.json: expected an object of"));
  EXPECT_THAT(problems("best.json", "{"), HasSubstr("best.json"));
  EXPECT_THAT(problems("history.jsonl", "[]\n"), HasSubstr("history.jsonl"));
  EXPECT_THAT(problems("metrics.jsonl", "nonsense\n"), HasSubstr("metrics.jsonl"));
  EXPECT_THAT(problems("checkpoints/step-00000020/config.json", "{}"),
              AllOf(HasSubstr("has no complete checkpoint"), HasSubstr("step-00000020")));
  EXPECT_THAT(problems("checkpoints/step-00000020/training/manifest.json", "{"), HasSubstr("manifest.json"));
  // A line that is being written is no damage.
  add_run("b");
  write("b/metrics.jsonl", line(10, 3) + "{\"step\":2");
  EXPECT_THAT(summarize_run(dir_ / "b", "").problems, IsEmpty());
}

TEST_F(RunSummaries, FindWorkdirsBelowAFolder) {
  add_run("b");
  add_run("a");
  add_run("sweep/x/y");
  add_run("1/2/3/deep");
  add_run(".hidden");
  write("notes/readme", "x");
  write("file", "x");
  add_run("b/previous/0123");  // what a run has moved aside is part of it
  const std::string d = dir_.path();
  EXPECT_THAT(find_workdirs(d), ElementsAre(d + "/a", d + "/b", d + "/sweep/x/y"));
  EXPECT_THAT(find_workdirs(d + "/a"), ElementsAre(d + "/a"));
  EXPECT_THAT(find_workdirs(d + "/notes"), IsEmpty());
  EXPECT_THROW(find_workdirs(d + "/nowhere"), UsageError);
  EXPECT_THROW(find_workdirs(d + "/file"), UsageError);
}

// A second for reading it would be 4 GB/s; the end alone takes microseconds.
TEST_F(RunSummaries, ReadOnlyTheEndOfLargeFiles) {
  for (int i = 0; i < 300; ++i) add_run("run" + std::to_string(i));
  constexpr std::uintmax_t kHuge = std::uintmax_t{4} << 30;  // sparse: zeros that take no memory
  for (const char* name : {"run7/metrics.jsonl", "run7/history.jsonl"}) {
    const std::string end = "\n" + slurp(dir_ / name);
    std::filesystem::resize_file(dir_ / name, kHuge);
    std::ofstream(dir_ / name, std::ios::app) << end;
  }
  const double begin = seconds();
  i64 n = 0;
  for (const std::string& w : find_workdirs(dir_.path())) {
    const RunSummary r = summarize_run(w, "");
    n += r.step == 20 && r.total_steps == 30;
  }
  EXPECT_EQ(n, 300);
  EXPECT_LT(seconds() - begin, 1.0);
}

}  // namespace
}  // namespace redco::test
