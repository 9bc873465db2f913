// The workdir: damaged checkpoints, several runs, several processes, a failing disk.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli/cli_testing.h"
#include "workdir/workdir_names.h"

namespace redco::test {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

class Workdir : public Cli {
 protected:
  void SetUp() override {
    write("text.txt", some_text(120));
    write("job.yaml", kTinyJob);
    if (trained_) {
      copy(*trained_ / "run", path("run"));
      return;
    }
    // Steps 5, 10, 15 and 20. Trained once for all tests.
    good(train({"train.max_steps=20", "checkpoint.keep_last=10"}));
    trained_ = std::make_unique<TempDir>(TempDir::in_memory);
    copy(path("run"), *trained_ / "run");
  }
  static void TearDownTestSuite() { trained_.reset(); }
  static void copy(const std::string& from, const std::string& to) {
    fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  }
  Words train(const Words& more) {
    Words w = {"train", "job.yaml", "checkpoint.every_n_steps=5", "train.schedule=constant"};
    w.insert(w.end(), more.begin(), more.end());
    return w;
  }
  void flip(const std::string& name, int from_end) {
    std::fstream f(path(name), std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(-from_end, std::ios::end);
    const char c = static_cast<char>(f.peek() ^ 0x40);
    f.seekp(-from_end, std::ios::end);
    f.put(c);
  }
  json read_json(const std::string& name) { return json::parse(read(name)); }
  std::string id(const std::string& workdir = "run") { return read_json(workdir + "/run.json")["id"]; }
  std::string target(const std::string& pointer) {
    return fs::read_symlink(path("run/checkpoints/" + pointer)).string();
  }
  std::vector<int> metric_steps() {
    std::vector<int> steps;
    std::istringstream in(read("run/metrics.jsonl"));
    for (std::string line; std::getline(in, line);) steps.push_back(json::parse(line)["step"]);
    return steps;
  }
  static inline std::unique_ptr<TempDir> trained_;
};

TEST_F(Workdir, AFlippedByteIsAnErrorWithARemedy) {
  const std::string at = "run/checkpoints/step-00000020/";
  for (const std::string file : {"model.safetensors", "training/optimizer.safetensors", "config.json"}) {
    flip(at + file, 9);
    for (const std::string ranks : {"1", "2"}) {
      if (ranks == "2" && file != "model.safetensors") continue;
      refused(train({"train.max_steps=25", "parallel.n_ranks=" + ranks}), 3,
              {at + file + ": damaged contents", "bytes 0 to ",
               "checkpoint.resume=", "checkpoints/step-00000015 uses the newest older complete"});
      if (file.starts_with("training")) continue;
      for (const std::string command : {"predict", "evaluate"})
        refused(
            {command, "job.yaml", "predict.prompt=the", "data.eval=text.txt", "parallel.n_ranks=" + ranks}, 3,
            {at + file + ": damaged contents", "predict.checkpoint=", "step-00000015"});
    }
    flip(at + file, 9);
  }
  // The same with another job; the remedy in the message works.
  flip(at + "model.safetensors", 9);
  refused(
      {"predict", "model.path=run/checkpoints/step-00000020", "model.tokenizer=bytes", "predict.prompt=a"}, 3,
      {"damaged contents", "model.path="});
  good(train({"train.max_steps=25", "checkpoint.resume=run/checkpoints/step-00000015"}));
  EXPECT_TRUE(has("run/checkpoints/step-00000025"));
}

TEST_F(Workdir, APipeInPlaceOfAManifestIsAnError) {
  const std::string manifest = path("run/checkpoints/step-00000020/training/manifest.json");
  fs::remove(manifest);
  ASSERT_EQ(mkfifo(manifest.c_str(), 0600), 0);
  refused(train({"train.max_steps=25"}), 3, {"manifest.json: not a plain file", "step-00000015"});
  refused({"predict", "job.yaml", "predict.prompt=a"}, 3, {"not a plain file", "predict.checkpoint="});
}

TEST_F(Workdir, PredictFollowsLast) {
  const Words words = {"predict", "job.yaml", "predict.prompt=the", "predict.max_new_tokens=6"};
  const std::string newest = good(words).out;
  fs::remove(path("run/checkpoints/last"));
  fs::create_directory_symlink("step-00000005", path("run/checkpoints/last"));
  Ran r = good(words);
  EXPECT_EQ(lines_with(r.err,
                       "warning: [checkpoint] run/checkpoints/last names step-00000005, and "
                       "step-00000020 is newer"),
            1)
      << r.err;
  Words named = words;
  named.push_back("predict.checkpoint=run/checkpoints/step-00000005");
  EXPECT_EQ(good(named).out, r.out);
  // If its checkpoint is incomplete, the newest complete one is used, and the log has a line about it.
  fs::remove(path("run/checkpoints/step-00000005/config.json"));
  r = good(words);
  EXPECT_EQ(r.out, newest);
  EXPECT_EQ(lines_with(r.err,
                       "warning: [checkpoint] skipping run/checkpoints/step-00000005: config.json is "
                       "missing"),
            1)
      << r.err;
}

TEST_F(Workdir, ResumeNeverMovesTheOldRunAside) {
  const std::string old = id();
  good(train({"train.max_steps=10", "checkpoint.resume=never", "train.seed=7"}));
  const std::string moved = "run/previous/" + old;
  EXPECT_NE(id(), old);
  EXPECT_EQ(read_json("run/run.json")["lineage"], json::array());
  for (const char* name : {"checkpoints/step-00000020/model.safetensors", "checkpoints/last", "metrics.jsonl",
                           "tensorboard", "config.resolved.yaml", "plan.json", "log.txt", "run.json"})
    EXPECT_TRUE(has(moved + "/" + name)) << name;
  EXPECT_THAT(read(moved + "/config.resolved.yaml"), HasSubstr("seed: 42"));
  EXPECT_THAT(read("run/config.resolved.yaml"), HasSubstr("seed: 7"));
  EXPECT_THAT(read(moved + "/log.txt"), HasSubstr("the old run's files are moved to " + moved));
  EXPECT_THAT(read("run/log.txt"), HasSubstr("[train] done: 10 steps"));
  EXPECT_EQ(metric_steps(), (std::vector<int>{5, 10}));
  EXPECT_EQ(target("last"), "step-00000010");
  EXPECT_FALSE(has("run/checkpoints/step-00000020"));
  // The same run continues.
  const std::string now = id();
  EXPECT_THAT(good(train({"train.max_steps=15", "train.seed=7"})).err, HasSubstr("(step 10 of 15)"));
  EXPECT_EQ(id(), now);
  EXPECT_EQ(read_json("run/checkpoints/last/training/manifest.json")["run"]["id"], now);
  EXPECT_THAT(read("run/checkpoints/last/training/job.yaml"), HasSubstr("max_steps: 15"));
}

TEST_F(Workdir, AResumeByPathContinuesOnlyThatCheckpoint) {
  const std::string old = id();
  const Ran r = good(train(
      {"train.max_steps=15", "checkpoint.resume=run/checkpoints/step-00000010", "checkpoint.keep_last=9"}));
  EXPECT_EQ(lines_with(r.err, "moved to run/previous/" + old), 1) << r.err;
  // The new log also has the lines before the move of the old one.
  EXPECT_THAT(read("run/log.txt"), HasSubstr("training data: "));
  EXPECT_THAT(read("run/log.txt"), HasSubstr("moved to run/previous/" + old));
  EXPECT_NE(id(), old);
  EXPECT_EQ(read_json("run/run.json")["lineage"], (json{{{"run", old}, {"step", 10}}}));
  for (const char* step : {"step-00000015", "step-00000020"})
    EXPECT_TRUE(has("run/previous/" + old + "/checkpoints/" + step)) << step;
  EXPECT_TRUE(has("run/checkpoints/step-00000005"));
  EXPECT_FALSE(has("run/checkpoints/step-00000020"));
  EXPECT_EQ(target("last"), "step-00000015");
  EXPECT_EQ(metric_steps(), (std::vector<int>{5, 10, 15}));
  // From another workdir: no file of the former run stays.
  const std::string here = id();
  copy(path("run"), path("other"));
  good(train({"train.max_steps=10", "checkpoint.resume=other/checkpoints/step-00000005"}));
  EXPECT_EQ(read_json("run/run.json")["lineage"], (json{{{"run", old}, {"step", 5}}}));
  EXPECT_EQ(metric_steps(), (std::vector<int>{10}));
  EXPECT_TRUE(has("run/previous/" + here + "/checkpoints/step-00000015"));
  EXPECT_FALSE(has("run/checkpoints/step-00000005"));
  // A requeued job continues its own run.
  EXPECT_THAT(good(train({"train.max_steps=20"})).err, HasSubstr("(step 10 of 20)"));
}

// Every option that writes into the workdir is on.
TEST_F(Workdir, HasExactlyTheListedNames) {
  fs::remove_all(path("run"));
  good(train({"train.max_steps=5", "data.eval=text.txt", "eval.n_outputs=1",
              "eval.generation.max_new_tokens=2", "train.profile.start=2"}));
  good({"report", "run"});
  fs::create_directory(path("run/calls"));  // only a run that is stuck writes it
  std::vector<std::string> listed, of_run = workdir::names_of_run();
  for (const workdir::Name& n : workdir::names()) listed.emplace_back(n.name);
  const auto names_in = [&](const std::string& folder) {
    std::vector<std::string> out;
    for (const auto& e : fs::directory_iterator(path(folder))) out.push_back(e.path().filename());
    return out;
  };
  const std::string old = id();
  std::vector<std::string> first = names_in("run");
  for (const char* later : {workdir::kPrevious, workdir::kMoving}) first.emplace_back(later);
  EXPECT_THAT(first, ::testing::UnorderedElementsAreArray(listed));
  // A new run inherits none of them.
  good(train({"train.max_steps=5", "checkpoint.resume=never"}));
  EXPECT_THAT(names_in("run/previous/" + old), ::testing::UnorderedElementsAreArray(of_run));
  EXPECT_FALSE(has("run/profile"));
  EXPECT_FALSE(has("run/calls"));
}

// Older versions of redco wrote checkpoints without a run id.
TEST_F(Workdir, CheckpointsWithoutARunAreAdopted) {
  fs::remove(path("run/run.json"));
  for (const auto& step : fs::directory_iterator(path("run/checkpoints"))) {
    if (step.is_symlink()) continue;
    const std::string name = step.path() / "training/manifest.json";
    json m = json::parse(slurp(name));
    m["format_version"] = 1;
    m.erase("run");
    m.erase("chunk_bytes");
    for (json& f : m["files"]) f["xxh3"] = f["xxh3"][0];
    spill(name, m.dump());
  }
  EXPECT_THAT(good(train({"train.max_steps=25"})).err, HasSubstr("(step 20 of 25)"));
  EXPECT_EQ(read_json("run/run.json")["lineage"], (json{{{"run", ""}, {"step", 20}}}));
  EXPECT_EQ(read_json("run/checkpoints/last/training/manifest.json")["format_version"], 2);
  EXPECT_TRUE(has("run/checkpoints/step-00000020"));   // keep_last is 2
  EXPECT_FALSE(has("run/checkpoints/step-00000015"));  // pruned as this run's
  EXPECT_FALSE(has("run/previous"));
}

TEST_F(Workdir, AKillWhileTheOldRunIsMovedIsCompleted) {
  const std::string old = id();
  int killed = 0;
  for (const char* fault : {"rename:1:kill", "rename:2:kill", "rename:5:kill", "rename:11:kill"}) {
    fs::remove_all(path("run"));
    copy(*trained_ / "run", path("run"));
    killed += run(train({"train.max_steps=10", "checkpoint.resume=never", "train.seed=7"}),
                  {{"REDCO_FAULT_IO", fault}})
                  .code == 128 + SIGKILL;
    const bool begun = has("run/.moving.json");
    const Ran r = run(train({"train.max_steps=10", "train.seed=7"}));
    if (begun) {
      EXPECT_EQ(r.code, 0) << fault << r.err;
      EXPECT_EQ(metric_steps(), (std::vector<int>{5, 10})) << fault;
      EXPECT_TRUE(has("run/previous/" + old + "/checkpoints/step-00000020")) << fault;
      EXPECT_FALSE(has("run/.moving.json"));
    } else {
      EXPECT_EQ(r.code, 2) << fault << r.err;  // the old run, with another seed
    }
  }
  EXPECT_EQ(killed, 4);
}

// A run with a published checkpoint must not fail. tests/train/checkpoint_test.cpp tests every system call.
TEST_F(Workdir, AFaultAfterThePublishEndsWithNoError) {
  int published = 0, warned = 0;
  for (const std::string fault :
       {"symlink:1", "rename:10", "rename:13", "rename:14", "unlink:2", "unlink:5", "list:9", "list:11"}) {
    fs::remove_all(path("run"));
    copy(*trained_ / "run", path("run"));
    const Ran r = run(train({"train.max_steps=25", "checkpoint.keep_last=1"}), {{"REDCO_FAULT_IO", fault}});
    const bool there = has("run/checkpoints/step-00000025");
    EXPECT_EQ(r.code, there ? 0 : 7) << fault << r.err;
    EXPECT_TRUE(has("run/checkpoints/step-00000020") || there);
    published += there;
    warned += lines_with(r.err, "the run continues") == 1;
    EXPECT_LE(lines_with(r.err, "the run continues"), 1) << r.err;
  }
  EXPECT_GE(published, 5);
  EXPECT_GE(warned, 4);
}

TEST_F(Workdir, AWorkdirThatIsMovedUnderTheRunIsAnIoError) {
  const pid_t pid = start(train({"train.max_steps=1000000", "train.logging_steps=1", "workdir=moving"}));
  ASSERT_TRUE(until([&] { return has("moving/checkpoints/last"); })) << read("stderr");
  fs::rename(path("moving"), path("moved"));
  const Ran r = wait(pid);
  EXPECT_EQ(r.code, 7) << r.err;
  EXPECT_EQ(lines_with(r.err, "error: "), 1) << r.err;
  EXPECT_THAT(r.err, HasSubstr("moved or removed"));
  EXPECT_FALSE(has("moving"));
}

TEST_F(Workdir, OnePredictAtATimePerFile) {
  std::string prompts;
  for (int i = 0; i < 4000; ++i) prompts += "{\"prompt\": \"the\"}\n";
  write("in.jsonl", prompts);
  const Words words = {"predict", "job.yaml", "predict.input=in.jsonl", "predict.output=out.jsonl",
                       "predict.max_new_tokens=25"};
  const pid_t pid = start(words);
  ASSERT_TRUE(until([&] { return has("out.jsonl"); })) << read("stderr");
  fs::rename(path("stderr"), path("stderr1"));
  fs::rename(path("stdout"), path("stdout1"));
  refused(words, 2, {"predict.output=out.jsonl is in use by process " + std::to_string(pid)});
  kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  write("in.jsonl", prompts.substr(0, prompts.size() / 1000));
  Words again = words;
  again.push_back("predict.overwrite=true");
  good(again);
  EXPECT_FALSE(has(".out.jsonl.lock"));
}

TEST_F(Workdir, AMetricThatIsNotFiniteIsAnError) {
  copy(path("run/checkpoints/step-00000020"), path("model"));
  fs::remove_all(path("model/training"));
  const std::string bytes = read("model/model.safetensors");
  std::uint64_t header = 0;
  std::memcpy(&header, bytes.data(), 8);
  std::string nan = bytes.substr(0, 8 + header);
  while (nan.size() < bytes.size()) nan += std::string("\0\0\xc0\x7f", 4);
  write("model/model.safetensors", nan);
  const Words words = {"evaluate", "model.path=model", "model.tokenizer=bytes", "data.eval=text.txt"};
  for (const std::string ranks : {"1", "2"}) {
    Words on = words;
    on.push_back("parallel.n_ranks=" + ranks);
    refused(on, 6, {"[eval] the metric loss", "not finite"});
  }
}

}  // namespace
}  // namespace redco::test
