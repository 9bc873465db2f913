// A rank that fails ends all ranks, with one message, the right exit code, and no process left.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

class Failures : public Cli {
 protected:
  // Builds tests/cli/failing_pipeline.cpp once for all tests.
  static void SetUpTestSuite() {
    built_ = new TempDir(TempDir::in_memory);
    const char* named = std::getenv("CXX");
    const std::string source = REDCO_SOURCE_DIR;
    const std::string build = std::filesystem::path(REDCO_BINARY).parent_path().parent_path().string();
    const std::string command = std::string(named ? named : "c++") + " -std=c++20 -shared -fPIC -I" + source +
                                "/src -I" + build + "/abi " + source + "/tests/cli/failing_pipeline.cpp -o " +
                                (*built_ / "fail.so");
    ASSERT_EQ(std::system(command.c_str()), 0) << command;
  }
  static void TearDownTestSuite() {
    delete built_;
    built_ = nullptr;
  }
  void SetUp() override {
    write("text.txt", some_text(120));
    write("job.yaml", kTinyJob);
  }
  Ran fail(const std::string& how, int ranks, const Words& more = {}) {
    std::filesystem::remove_all(path("run"));
    Words words = {"train", "job.yaml", "parallel.n_ranks=" + std::to_string(ranks),
                   "pipeline=" + (*built_ / "fail.so"), "fault.max_restarts=0"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words, {{"REDCO_TEST_FAIL", how}});
  }
  // Whether no process runs in this test's folder, the working folder of the ranks.
  void expect_nobody_left(const std::string& what) {
    const auto left = [&] {
      int n = 0;
      for (const auto& p : std::filesystem::directory_iterator("/proc")) {
        std::error_code gone;
        n += std::filesystem::read_symlink(p.path() / "cwd", gone) == dir_.path();
      }
      return n;
    };
    EXPECT_TRUE(until([&] { return left() == 0; })) << what;
  }

  // Sends a signal to the second rank of the job that runs in this test's folder. Returns the number of such
  // processes.
  int signal_rank_1(int signal) const {
    int found = 0;
    for (const auto& p : std::filesystem::directory_iterator("/proc")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(p.path() / "cwd", gone) != dir_.path()) continue;
      if (slurp(p.path() / "environ").find(std::string("OMPI_COMM_WORLD_RANK=1") + '\0') == std::string::npos)
        continue;
      kill(std::atoi(p.path().filename().c_str()), signal);
      ++found;
    }
    return found;
  }

  static TempDir* built_;
};
TempDir* Failures::built_ = nullptr;

TEST_F(Failures, AThrowOnOneRankOrOnAll) {
  struct Case {
    std::string who;
    int ranks;
  };
  for (const auto& [who, ranks] : {Case{"0", 1}, {"0", 2}, {"1", 2}, {"all", 4}}) {
    const std::string what = "throw:" + who + " on " + std::to_string(ranks);
    const Ran r = fail("throw:" + who, ranks);
    EXPECT_EQ(r.code, 3) << what << r.err;
    EXPECT_EQ(lines_with(r.err, "[test] bad file"), 1) << what << r.err;
    EXPECT_EQ(lines_with(r.err, "of two lines on"), 1) << what << r.err;
    EXPECT_EQ(lines_with(r.err, "error:"), 1) << what << r.err;
    EXPECT_EQ(lines_with(r.err, "MPI_ABORT"), 0) << what << r.err;
    if (ranks > 1)
      EXPECT_THAT(r.err, HasSubstr(who == "all" ? "error: rank " : "error: rank " + who + ": [test]"));
    expect_nobody_left(what);
  }
}

TEST_F(Failures, AnErrorOfAllRanksNamesNoRank) {
  for (const std::string who : {"1", "all"}) {
    const Ran r = fail("agreed:" + who, 2);
    EXPECT_EQ(r.code, 3) << r.err;
    EXPECT_EQ(lines_with(r.err, "error:"), 1) << r.err;
    EXPECT_THAT(r.err, HasSubstr("error: [test] bad file on rank " + (who == "all" ? "0" : who) + "\n"));
  }
}

TEST_F(Failures, ForeignExceptionsAreThePipelines) {
  Ran r = fail("std:1", 2);
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, HasSubstr("error: rank 1: [pipeline] loss() failed: [test] index. The pipeline is "));
  r = fail("int:1", 2);
  EXPECT_EQ(r.code, 2);
  EXPECT_EQ(lines_with(r.err, "error: rank 1: "), 1) << r.err;
  EXPECT_EQ(fail("int:0", 1).code, 2);
}

TEST_F(Failures, AKilledRankIsNamed) {
  for (const std::string who : {"0", "1"}) {
    Ran r = fail("kill:" + who, 2);
    EXPECT_EQ(r.code, 5);
    EXPECT_EQ(lines_with(r.err, "rank " + who + " on "), 1) << r.err;
    EXPECT_THAT(r.err, HasSubstr("was killed by signal 9 (Killed); all ranks have ended"));
    EXPECT_EQ(lines_with(r.err, "error:"), 0) << r.err;
    expect_nobody_left("kill:" + who);
  }
  const Ran r = fail("exit:1", 2);
  EXPECT_EQ(r.code, 5);
  EXPECT_THAT(r.err, testing::ContainsRegex(
                         "rank 1 on .* ended with code 9 without a message; all ranks have ended"));
}

TEST_F(Failures, ARankThatHangsIsNamed) {
  const Ran r = fail("hang:1", 2, {"fault.timeout=2"});
  EXPECT_EQ(r.code, 5);
  EXPECT_EQ(lines_with(r.err, "no progress for 2 s on rank 1 on "), 1) << r.err;
  EXPECT_EQ(lines_with(r.err, "(phase: train, step 2)"), 1) << r.err;
  EXPECT_EQ(lines_with(r.err, "error:"), 1) << r.err;
  expect_nobody_left("rank 1 hangs");
  const std::string calls = read("run/calls/rank-0.txt");
  EXPECT_THAT(calls, HasSubstr("rank 0 on "));
  EXPECT_GT(lines_with(calls, " of a group of 2 ranks: all_reduce, "), 0) << calls;
}

TEST_F(Failures, ASingleProcessWatchesItself) {
  const Ran r = fail("hang:0", 1, {"fault.timeout=1"});
  EXPECT_EQ(r.code, 5);
  EXPECT_EQ(lines_with(r.err, "rank 0 on "), 1) << r.err;
  EXPECT_EQ(lines_with(r.err, "made no progress for 1 s (phase: train, step 2)"), 1) << r.err;
  const auto listed = nlohmann::json::parse(good({"runs", ".", "--json"}).out);
  EXPECT_EQ(listed["state"], "failed");
  EXPECT_THAT(listed["state_text"], HasSubstr("made no progress for 1 s"));
}

// SIGTERM and SIGKILL to mpirun itself.
TEST_F(Failures, TheEndOfMpirunIsReported) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    std::filesystem::remove_all(path("run"));
    const pid_t pid = start({"train", "job.yaml", "parallel.n_ranks=2", "train.max_steps=1000000",
                             "train.logging_steps=1", "fault.max_restarts=0"});
    ASSERT_TRUE(until([&] { return has("run/metrics.jsonl") && !read("run/metrics.jsonl").empty(); }))
        << read("stderr");
    for (const auto& p : std::filesystem::directory_iterator("/proc")) {
      std::error_code gone;
      if (std::filesystem::read_symlink(p.path() / "cwd", gone) != dir_.path()) continue;
      const std::string name = slurp(p.path() / "comm");  // Open MPI 5 runs prterun
      if (name == "mpirun\n" || name == "prterun\n") kill(std::atoi(p.path().filename().c_str()), signal);
    }
    const Ran r = wait(pid);
    EXPECT_EQ(r.code, 5) << signal << r.err;
    EXPECT_EQ(lines_with(r.err, "redco: mpirun "), 1) << signal << r.err;
    EXPECT_EQ(lines_with(r.err, "error:"), 0) << signal << r.err;
    expect_nobody_left("mpirun was killed");
  }
}

// The launcher starts the ranks again from the newest checkpoint. checkpoint.resume=never holds for the first
// start only.
TEST_F(Failures, ALostRankIsStartedAgain) {
  const Words words = {"train",
                       "job.yaml",
                       "parallel.n_ranks=2",
                       "train.max_steps=60",
                       "train.logging_steps=1",
                       "checkpoint.every_n_steps=4",
                       "checkpoint.resume=never"};
  const auto with = [&](const std::string& workdir) {
    Words all = words;
    all.push_back("workdir=" + workdir);
    return all;
  };
  good(with("whole"));
  const pid_t pid = start(with("run"));
  ASSERT_TRUE(until([&] { return has("run/checkpoints/last/model.safetensors"); })) << read("stderr");
  EXPECT_EQ(signal_rank_1(SIGKILL), 1);
  const Ran r = wait(pid);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(lines_with(r.err, "killed by signal 9"), 1) << r.err;
  EXPECT_EQ(lines_with(r.err, "restart 1 of 3 in 1 s from the checkpoint of step "), 1) << r.err;
  for (const std::string file : {"model.safetensors", "training/optimizer.safetensors"})
    EXPECT_EQ(read("run/checkpoints/last/" + file), read("whole/checkpoints/last/" + file)) << file;
  EXPECT_EQ(lines_with(read("run/metrics.jsonl"), "\"step\":"), 60);
  EXPECT_EQ(lines_with(read("run/history.jsonl"), "\"event\":\"restart\""), 1) << read("run/history.jsonl");
  EXPECT_EQ(lines_with(read("run/history.jsonl"), "\"start\":2"), 1) << read("run/history.jsonl");
  EXPECT_THAT(read("run/checkpoints/last/training/manifest.json"), HasSubstr("\"start\":2"));
  expect_nobody_left("a rank was lost");

  // The same without a checkpoint: the state of some step before is in memory.
  Words copied = with("copied");
  std::ranges::replace(copied, "checkpoint.every_n_steps=4", "checkpoint.every_n_steps=1000");
  copied.insert(copied.end(), {"fault.buddy=true", "fault.buddy_steps=3"});
  const pid_t second = start(copied);
  ASSERT_TRUE(until([&] {
    return has("copied/metrics.jsonl") && lines_with(read("copied/metrics.jsonl"), "\"step\":") >= 8;
  })) << read("stderr");
  EXPECT_EQ(signal_rank_1(SIGKILL), 1);
  const Ran c = wait(second);
  EXPECT_EQ(c.code, 0) << c.err;
  EXPECT_EQ(lines_with(c.err, "restart 1 of 3 in 1 s from the newest buddy checkpoint"), 1) << c.err;
  EXPECT_EQ(lines_with(c.err, "continuing from the buddy checkpoint of step "), 1) << c.err;
  for (const std::string file : {"model.safetensors", "training/optimizer.safetensors"})
    EXPECT_EQ(read("copied/checkpoints/last/" + file), read("whole/checkpoints/last/" + file)) << file;
  EXPECT_EQ(lines_with(read("copied/metrics.jsonl"), "\"step\":"), 60);
  expect_nobody_left("a rank was lost, with buddy checkpoints");
}

// A rank that is stopped: the launcher names it.
TEST_F(Failures, AStoppedRankIsNamed) {
  const pid_t pid = start({"train", "job.yaml", "parallel.n_ranks=2", "train.max_steps=1000000",
                           "train.logging_steps=1", "fault.timeout=2", "fault.max_restarts=0"});
  ASSERT_TRUE(until([&] { return has("run/metrics.jsonl") && !read("run/metrics.jsonl").empty(); }))
      << read("stderr");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));  // a report with phase and step
  EXPECT_EQ(signal_rank_1(SIGSTOP), 1);
  const Ran r = wait(pid);
  EXPECT_EQ(r.code, 5) << r.err;
  EXPECT_EQ(lines_with(r.err, "no message for 2 s from rank 1 on "), 1) << r.err;
  EXPECT_EQ(lines_with(r.err, "(phase: train, step "), 1) << r.err;
  EXPECT_EQ(lines_with(r.err, "error:"), 1) << r.err;
  expect_nobody_left("rank 1 was stopped");
}

// The resumed run repeats the evaluation that the signal stopped, and ends like an uninterrupted run.
TEST_F(Failures, AnEvaluationStoppedByASignalIsRepeatedAfterResume) {
  for (const int ranks : {1, 2}) {
    const auto words = [&](const std::string& workdir) {
      return Words{"train",
                   "job.yaml",
                   "parallel.n_ranks=" + std::to_string(ranks),
                   "pipeline=" + (*built_ / "fail.so"),
                   "data.eval=text.txt",
                   "eval.every_n_steps=5",
                   "eval.per_device_batch_size=16",
                   "checkpoint.save_best_by.min=[loss]",
                   "workdir=" + workdir};
    };
    const std::string whole = "whole" + std::to_string(ranks), cut = "cut" + std::to_string(ranks);
    good(words(whole));
    // A batch checks the evaluation before step 1; then each evaluation has some.
    const Ran stopped = run(words(cut), {{"REDCO_TEST_FAIL", "term-eval-9:" + std::to_string(ranks - 1)}});
    EXPECT_EQ(stopped.code, 8) << stopped.err;
    EXPECT_EQ(lines_with(stopped.err, "before its evaluation; saved"), 1) << stopped.err;
    EXPECT_THAT(read(cut + "/checkpoints/last/training/state.json"),
                HasSubstr("\"pending_evaluation\": true"));
    const Ran resumed = good(words(cut));
    EXPECT_EQ(lines_with(resumed.err, "resuming from"), 1) << resumed.err;
    for (const std::string file : {"last/model.safetensors", "last/training/optimizer.safetensors",
                                   "last/training/state.json", "best-loss/model.safetensors"})
      EXPECT_TRUE(read(cut + "/checkpoints/" + file) == read(whole + "/checkpoints/" + file)) << file;
    const auto evaluations = [&](const std::string& workdir) {
      std::vector<std::string> steps;
      std::istringstream in(read(workdir + "/metrics.jsonl"));
      for (std::string line; std::getline(in, line);)
        if (line.find("eval_loss") != line.npos) steps.push_back(line.substr(0, line.find(',')));
      return steps;
    };
    EXPECT_EQ(evaluations(cut), evaluations(whole));
    EXPECT_EQ(evaluations(cut).size(), 4u);
  }
}

TEST_F(Failures, ASignalBeforeTheFirstStepEndsImmediately) {
  for (const int ranks : {1, 2}) {
    const Ran r = run({"train", "job.yaml", "parallel.n_ranks=" + std::to_string(ranks),
                       "pipeline=" + (*built_ / "fail.so"), "data.eval=text.txt"},
                      {{"REDCO_TEST_FAIL", "term-eval-1:all"}});
    EXPECT_EQ(r.code, 8) << r.err;
    EXPECT_EQ(lines_with(r.err, "stopped by SIGTERM; nothing had to be saved"), 1) << r.err;
    expect_nobody_left("a signal before the first step");
  }
}

TEST_F(Failures, AUsersPipelineIsFoundFromAnotherFolder) {
  std::filesystem::copy(*built_ / "fail.so", path("mine.so"));
  good({"train", "job.yaml", "pipeline=./mine.so", "train.max_steps=2"});
  std::filesystem::create_directory(path("elsewhere"));
  const auto evaluated = [&](const std::string& more) {
    return std::system(("cd " + path("elsewhere") + " && XDG_CONFIG_HOME=" + path("config") + " " +
                        REDCO_BINARY + " evaluate workdir=../run data.eval=../text.txt " + more +
                        " > out 2> err")
                           .c_str());
  };
  // Its code runs only if the user names the file, or has trusted its bytes.
  EXPECT_NE(evaluated(""), 0);
  EXPECT_THAT(read("elsewhere/err"), HasSubstr("and would run its code. If it is yours, name it "
                                               "(pipeline=" +
                                               path("mine.so") + ") or trust it once (`redco trust"));
  EXPECT_EQ(evaluated("pipeline=../mine.so"), 0) << read("elsewhere/err");
  good({"trust", "mine.so"}, {{"XDG_CONFIG_HOME", path("config")}});
  EXPECT_EQ(evaluated(""), 0) << read("elsewhere/err");
  EXPECT_THAT(read("elsewhere/out"), HasSubstr("\"loss\""));
  write("mine.so", read("mine.so") + "x");
  EXPECT_NE(evaluated(""), 0);
  EXPECT_THAT(read("elsewhere/err"), HasSubstr("redco trust"));
  // The shared object has moved.
  std::filesystem::create_directory(path("new"));
  std::filesystem::rename(path("mine.so"), path("new/mine.so"));
  EXPECT_NE(evaluated(""), 0);
  EXPECT_EQ(evaluated("pipeline=../new/mine.so"), 0) << read("elsewhere/err");
}

TEST_F(Failures, NoRankSurvivesItsLauncher) {
  const pid_t pid =
      start({"train", "job.yaml", "parallel.n_ranks=2", "train.max_steps=1000000", "train.logging_steps=1"});
  ASSERT_TRUE(until([&] { return has("run/metrics.jsonl") && !read("run/metrics.jsonl").empty(); }))
      << read("stderr");
  kill(pid, SIGKILL);
  EXPECT_EQ(wait(pid).code, 128 + SIGKILL);
  expect_nobody_left("the launcher was killed");
}

}  // namespace
}  // namespace redco::test
