#include "report/watch_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "report/mlflow.h"
#include "report/page_testing.h"
#include "support/error_text.h"

namespace redco {
namespace {

using testing::AllOf;
using testing::HasSubstr;

RunData a_run(int steps) {
  RunData run;
  run.curves = {{"loss", {}}, {"tokens_per_s", {}}, {"step_s", {}}, {"waiting_s", {}}, {"eval_loss", {}}};
  for (int s = 1; s <= steps; ++s) {
    run.curves[0].second.add(s, 4.0 / s);
    run.curves[1].second.add(s, 1500);
    run.curves[2].second.add(s, 2);
    run.curves[3].second.add(s, 0.5);
  }
  run.curves[4].second.add(steps, 1.25);
  run.first_time = 100;
  run.last_time = 190;
  run.log_tail = "first line\n[train] last \x1b[31mline\n";
  ckpt::RunEvent e;
  e.total_steps = 100;
  e.hosts = "a:2, b:2";
  run.events = {e};
  return run;
}

TEST(WatchPage, ShowsStepLossSpeedHostsAndLog) {
  const std::string page =
      watch_page("runs/x", a_run(20), {RunState::Kind::running, "in use by process 7", ""},
                 {.columns = 100, .rows = 40, .now = 200});
  EXPECT_THAT(page, AllOf(HasSubstr("runs/x  in use by process 7\n"), HasSubstr("step 20 of 100  20 %"),
                          HasSubstr("left"), HasSubstr("loss 0.2"), HasSubstr("1.50 k tokens/s"),
                          HasSubstr("25"), HasSubstr("evaluation: loss 1.250 (step 20)"),
                          HasSubstr("hosts: a:2, b:2"), HasSubstr("[train] last "), HasSubstr("█")));
  EXPECT_EQ(page.find('\x1b'), std::string::npos);
  EXPECT_THAT(watch_page("x", {}, {RunState::Kind::unknown, "", ""}, {}),
              HasSubstr("x  not running\nstep 0\n"));
}

TEST(WatchPage, FitsTheTerminal) {
  for (const auto& [columns, rows] : {std::pair(60, 12), std::pair(20, 5), std::pair(1, 1)}) {
    const std::string page = watch_page(std::string(300, 'x'), a_run(2000), {RunState::Kind::running, "", ""},
                                        {.columns = columns, .rows = rows, .now = 200});
    EXPECT_LE(std::count(page.begin(), page.end(), '\n'), rows);
    int column = 0;
    for (const char c : page) {
      column = c == '\n' ? 0 : column + ((static_cast<unsigned char>(c) & 0xC0) != 0x80);
      ASSERT_LE(column, columns);
    }
  }
}

// One slow step changes the remaining time by its part of the mean, not to 80 steps as slow.
TEST(WatchPage, TheRemainingTimeIsOfSeveralSteps) {
  RunData run = a_run(20);
  run.curves[2].second.add(21, 22);
  EXPECT_THAT(watch_page("x", run, {RunState::Kind::running, "", ""}, {}),
              HasSubstr("about 4 min 00 s left"));
}

TEST(WatchPage, AFolderOfRunsNamesThem) {
  test::TempDir dir(test::TempDir::in_memory);
  make_dirs(dir / "sweep");
  make_dirs(dir / "task-0");
  const std::string before = usage_error([&] { read_run(dir.path()); });
  EXPECT_EQ(before.find("holds runs"), std::string::npos);
  test::spill(dir / "task-0/metrics.jsonl", "");
  EXPECT_THAT(usage_error([&] { read_run(dir.path()); }),
              HasSubstr("It holds runs, such as " + (dir / "task-0") + "; `redco runs " + dir.path() +
                        "` lists them"));
}

TEST(WatchPage, ChartsRiseToTheRight) {
  Series s;
  for (int i = 0; i <= 8; ++i) s.add(i, i);
  EXPECT_EQ(text_chart(s, 20, 1), (std::vector<std::string>{"▁▁▂▃▄▅▆▇█"}));
  Series flat;
  flat.add(1, 2);
  EXPECT_EQ(text_chart(flat, 20, 2).size(), 2u);
  EXPECT_EQ(text_chart({}, 20, 2)[0], "");
}

TEST(Mlflow, WritesParamsMetricsAndTags) {
  test::TempDir dir(test::TempDir::in_memory);
  make_dirs(dir / "run");
  test::spill(
      dir / "run/metrics.jsonl",
      "{\"step\":1,\"loss\":2.5,\"eval/x y\":1,\"time\":10.5}\nbad\n{\"step\":2,\"loss\":2,\"time\":11}\n");
  test::spill(dir / "run/config.resolved.yaml", "train:\n  seed: 7\n  betas: [0.9, 0.95]\nworkdir: ~\n");
  test::spill(dir / "run/history.jsonl", test::event({{"event", "start"}, {"step", 0}, {"time", 9}}) +
                                             test::event({{"event", "finished"}, {"step", 2}}));
  write_mlflow({dir / "run"}, dir / "mlruns");
  std::vector<std::string> runs;
  for (const auto& e : std::filesystem::directory_iterator(dir / "mlruns/100"))
    if (e.is_directory()) runs.push_back(e.path().string());
  ASSERT_EQ(runs.size(), 1u);
  test::spill(runs[0] + "/params/old", "1");
  test::spill(runs[0] + "/artifacts/mine.txt", "added in MLflow");
  test::spill(runs[0] + "/tags/mlflow.note.content", "added in MLflow");
  write_mlflow({dir / "run"}, dir / "mlruns");  // replaced, but for what the user has added
  EXPECT_FALSE(exists(runs[0] + "/params/old"));
  EXPECT_TRUE(exists(runs[0] + "/artifacts/mine.txt"));
  EXPECT_TRUE(exists(runs[0] + "/tags/mlflow.note.content"));
  EXPECT_EQ(test::slurp(runs[0] + "/metrics/loss"), "10500 2.5 1\n11000 2 2\n");
  EXPECT_EQ(test::slurp(runs[0] + "/metrics/eval_x_y"), "10500 1 1\n");
  EXPECT_EQ(test::slurp(runs[0] + "/params/train.seed"), "7");
  EXPECT_EQ(test::slurp(runs[0] + "/params/train.betas"), "0.9, 0.95");
  EXPECT_EQ(test::slurp(runs[0] + "/tags/mlflow.runName"), "run");
  EXPECT_THAT(test::slurp(runs[0] + "/meta.yaml"),
              AllOf(HasSubstr("status: 3\n"), HasSubstr("start_time: 9000\n")));
  EXPECT_THAT(test::slurp(dir / "mlruns/100/meta.yaml"), HasSubstr("name: redco"));
  // A run that failed before its first line of metrics.
  test::spill(dir / "run/metrics.jsonl", "");
  test::spill(dir / "run/history.jsonl", test::event({{"event", "start"}, {"step", 0}, {"time", 9}}) +
                                             test::event({{"event", "failed"}, {"code", 6}, {"time", 12}}));
  write_mlflow({dir / "run"}, dir / "mlruns");
  EXPECT_THAT(
      test::slurp(runs[0] + "/meta.yaml"),
      AllOf(HasSubstr("status: 4\n"), HasSubstr("start_time: 9000\n"), HasSubstr("end_time: 12000\n")));
}

}  // namespace
}  // namespace redco
