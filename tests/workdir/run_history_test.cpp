// history.jsonl and best.json.
#include "workdir/run_history.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/error.h"
#include "base/timing.h"
#include "support/temp_dir.h"

namespace redco::ckpt {
namespace {

using Kind = RunEvent::Kind;
using test::TempDir;

TEST(RunHistory, IsReadBackAsItWasWritten) {
  const TempDir dir(TempDir::in_memory);
  EXPECT_TRUE(read_run_history(dir.path()).events.empty());
  EXPECT_EQ(run_history_size(dir.path()), 0);
  append_run_event(dir.path(),
                   {.step = 20, .total_steps = 100, .pipeline = "lm", .model = "a \"model\"\n\xff"});
  append_run_event(dir.path(), {.kind = Kind::failed, .reason = "two\nlines", .code = 6});
  append_run_event(dir.path(), {.kind = Kind::stopped, .step = 40, .reason = "SIGTERM"});
  append_run_event(dir.path(), {.kind = Kind::finished, .step = 100});
  const RunHistory h = read_run_history(dir.path());
  ASSERT_EQ(h.events.size(), 4u);
  EXPECT_EQ(h.damaged, 0);
  EXPECT_EQ(h.events[0].kind, Kind::start);
  EXPECT_EQ(h.events[0].step, 20);
  EXPECT_EQ(h.events[0].total_steps, 100);
  EXPECT_EQ(h.events[0].pipeline, "lm");
  EXPECT_EQ(h.events[0].model, "a \"model\"\n\xEF\xBF\xBD");
  EXPECT_NEAR(h.events[0].time, wall_seconds(), 60);
  EXPECT_EQ(h.events[1].kind, Kind::failed);
  EXPECT_EQ(h.events[1].step, -1);
  EXPECT_EQ(h.events[1].code, 6);
  EXPECT_EQ(h.events[1].reason, "two\nlines");
  EXPECT_EQ(h.events[2].reason, "SIGTERM");
  EXPECT_EQ(h.events[3].step, 100);
  EXPECT_EQ(run_history_size(dir.path()), static_cast<i64>(test::slurp(dir / "history.jsonl").size()));
}

// Two ranks that fail at the same moment both have their line.
TEST(RunHistory, ManyThreadsAppendTogether) {
  const TempDir dir(TempDir::in_memory);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i)
        append_run_event(dir.path(), {.kind = Kind::failed,
                                      .reason = std::string(static_cast<std::size_t>(50 * t + i), 'x'),
                                      .code = t});
    });
  for (auto& t : threads) t.join();
  const RunHistory h = read_run_history(dir.path());
  EXPECT_EQ(h.events.size(), 100u);
  EXPECT_EQ(h.damaged, 0);
}

TEST(RunHistory, ALineThatACrashHasCutEndsThere) {
  const TempDir dir(TempDir::in_memory);
  append_run_event(dir.path(), {.step = 0, .total_steps = 9});
  test::spill(dir / "history.jsonl", test::slurp(dir / "history.jsonl") + "{\"event\": \"fini");
  EXPECT_EQ(read_run_history(dir.path()).damaged, 0);  // it may be being written
  append_run_event(dir.path(), {.step = 5, .total_steps = 9});
  const RunHistory h = read_run_history(dir.path());
  ASSERT_EQ(h.events.size(), 2u);
  EXPECT_EQ(h.events[1].step, 5);
  EXPECT_EQ(h.damaged, 1);
}

TEST(RunHistory, TheEndOfALongOneIsReadAlone) {
  const TempDir dir(TempDir::in_memory);
  for (int i = 0; i < 50; ++i) append_run_event(dir.path(), {.step = i, .total_steps = 99});
  const RunHistory h = read_run_history(dir.path(), 500);
  EXPECT_GE(h.events.size(), 3u);
  EXPECT_LT(h.events.size(), 8u);
  EXPECT_EQ(h.events.back().step, 49);
  EXPECT_EQ(h.damaged, 0);
}

TEST(RunHistory, OtherLinesAreCounted) {
  const TempDir dir(TempDir::in_memory);
  test::spill(dir / "history.jsonl",
              "\n[]\n{}\n{\"event\": 3}\n{\"event\": \"party\"}\n"
              "{\"event\": \"start\", \"step\": \"x\", \"total_steps\": 1e300, \"code\": -5}\n");
  const RunHistory h = read_run_history(dir.path());
  EXPECT_EQ(h.damaged, 4);  // an empty line is none
  ASSERT_EQ(h.events.size(), 1u);
  EXPECT_EQ(h.events[0].step, -1);
  EXPECT_EQ(h.events[0].total_steps, 0);
}

TEST(BestMetrics, AreReadBackAndRefusedWhereDamaged) {
  const TempDir dir(TempDir::in_memory);
  EXPECT_TRUE(read_best_metrics(dir.path()).empty());
  write_best_metrics(dir.path(), {{"eval_loss", {0.1, 20}}, {"eval_f1", {3, 5}}});
  const BestMetrics best = read_best_metrics(dir.path());
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best.at("eval_loss").value, 0.1);
  EXPECT_EQ(best.at("eval_loss").step, 20);
  for (const char* bad :
       {"", "[]", "{\"a\": 1}", "{\"a\": {\"value\": 1}}", "{\"a\": {\"value\": \"1\", \"step\": 1}}",
        "{\"a\": {\"value\": 1, \"step\": 1.5}}"}) {
    test::spill(dir / "best.json", bad);
    EXPECT_THROW(read_best_metrics(dir.path()), ContentsError) << bad;
  }
}

}  // namespace
}  // namespace redco::ckpt
