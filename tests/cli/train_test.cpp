// Training through the program: meshes, resuming, signals, faults.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

using nlohmann::json;

std::vector<std::string> mesh_words(int dp, int mp) {
  return {"parallel.n_model_shards=" + std::to_string(mp), "parallel.n_ranks=" + std::to_string(dp * mp)};
}

// name -> values of an fp32 safetensors file.
std::map<std::string, std::vector<float>> tensors(const std::string& path) {
  const std::string bytes = slurp(path);
  std::uint64_t n = 0;
  std::memcpy(&n, bytes.data(), 8);
  std::map<std::string, std::vector<float>> out;
  const json header = json::parse(bytes.substr(8, n));
  for (const auto& [name, t] : header.items()) {
    if (name == "__metadata__") continue;
    const std::size_t begin = t["data_offsets"][0], end = t["data_offsets"][1];
    EXPECT_EQ(t["dtype"], "F32");
    out[name].resize((end - begin) / 4);
    std::memcpy(out[name].data(), bytes.data() + 8 + n + begin, end - begin);
  }
  return out;
}

class Train : public Cli {
 protected:
  void SetUp() override {
    write("text.txt", some_text(120));
    write("job.yaml", kTinyJob);
  }
  // The job on a mesh, in a workdir.
  Words job(const std::string& workdir, int dp, int mp, const Words& more = {}) {
    Words w = {"train", "job.yaml", "workdir=" + workdir};
    for (const Words& part : {mesh_words(dp, mp), more}) w.insert(w.end(), part.begin(), part.end());
    return w;
  }
  std::vector<json> metrics(const std::string& workdir) {
    std::vector<json> all;
    std::istringstream in(read(workdir + "/metrics.jsonl"));
    for (std::string line; std::getline(in, line);) all.push_back(json::parse(line));
    return all;
  }
  // The step of the last complete line.
  long metrics_step(const std::string& workdir) {
    const std::string all = read(workdir + "/metrics.jsonl");
    const std::size_t end = all.rfind('\n');
    if (end == std::string::npos) return 0;
    const std::size_t before = end == 0 ? std::string::npos : all.rfind('\n', end - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    return json::parse(all.substr(begin, end - begin))["step"].get<long>();
  }
  void same_checkpoints(const std::string& a, const std::string& b, const std::string& step) {
    for (const char* file : {"model.safetensors", "training/optimizer.safetensors"}) {
      const std::string at = "/checkpoints/" + step + "/" + file;
      EXPECT_TRUE(read(a + at) == read(b + at)) << a << " and " << b << " differ in " << file;
    }
  }
};

TEST_F(Train, LossesAreEqualOnEveryMesh) {
  std::vector<double> losses;
  for (const auto& [dp, mp] : {std::pair{1, 1}, {1, 2}, {2, 2}}) {
    const std::string workdir = "w" + std::to_string(dp) + std::to_string(mp);
    const Ran r = good(job(workdir, dp, mp, {"data.eval=text.txt", "train.learning_rate=1e-2"}));
    EXPECT_EQ(r.out, "");
    EXPECT_THAT(r.err, HasSubstr("[train] done: 20 steps"));
    const auto m = metrics(workdir);
    ASSERT_EQ(m.size(), 5u);  // four lines of training, one of evaluation
    for (const char* key : {"step", "epoch", "loss", "learning_rate", "grad_norm", "tokens_per_s", "step_s",
                            "waiting_s", "ceiling_share", "peak_memory_bytes"})
      EXPECT_TRUE(m[0].contains(key)) << key;
    EXPECT_EQ(m[4]["step"], 20);
    losses.push_back(m[4]["eval_loss"]);
    EXPECT_NEAR(m[4]["eval_perplexity"].get<double>(), std::exp(losses.back()),
                1e-6 * std::exp(losses.back()));
    EXPECT_LT(losses.back(), m[0]["loss"].get<double>() - 1);
    for (const char* file : {"config.resolved.yaml", "log.txt", "checkpoints/last/config.json",
                             "checkpoints/last/model.safetensors", "checkpoints/last/training/state.json",
                             "checkpoints/last/training/manifest.json"})
      EXPECT_TRUE(has(workdir + "/" + file)) << file;
  }
  // In 20 steps of AdamW rounding grows to differences of about 1e-5 in the loss; a wrong gradient gives
  // 1e-2.
  EXPECT_NEAR(losses[0], losses[1], 1e-3);
  EXPECT_NEAR(losses[0], losses[2], 1e-3);
  // The resolved config is an equivalent job.
  good({"validate", "w11/config.resolved.yaml"});
}

TEST_F(Train, SaysAtTheStartWhatTheRunIs) {
  Words words = job("s", 1, 2, {"train.max_steps=5", "train.warmup_steps=3"});
  const Ran r = good(words);
  EXPECT_THAT(r.err, HasSubstr(" examples, "));
  EXPECT_THAT(r.err, HasSubstr("5 steps in total, 3 of them warm-up"));
  EXPECT_THAT(r.err, HasSubstr("output folder: s"));
  EXPECT_THAT(r.err, HasSubstr("warning: [train] the run has only 5 steps"));
  EXPECT_THAT(r.err, HasSubstr("step 1 has learning rate 0"));
  EXPECT_THAT(good(words).err, HasSubstr("the checkpoint has all 5 steps: nothing is left to train"));
}

TEST_F(Train, EvaluatesTheInitialParametersWhereAsked) {
  good(job("e", 1, 1, {"data.eval=text.txt", "eval.at_start=true", "train.max_steps=2"}));
  const auto m = metrics("e");
  ASSERT_GE(m.size(), 2u);
  EXPECT_EQ(m[0]["step"], 0);
  EXPECT_NEAR(m[0]["eval_loss"].get<double>(), std::log(257), 0.5);  // bytes; nothing is learned yet
  EXPECT_EQ(m.back()["step"], 2);
}

TEST_F(Train, WarnsOfAnswersLongerThanThePositions) {
  good(job("p", 1, 1, {"train.max_steps=1"}));
  const Ran r =
      good({"predict", "job.yaml", "workdir=p", "predict.prompt=the", "predict.max_new_tokens=5000"});
  EXPECT_THAT(r.err, HasSubstr("predict.max_new_tokens=5000 is more than the model's"));
}

// 60 windows and 8 rows per step: an epoch has 8 steps, the last one with 4 rows; step 10 is inside the
// second epoch.
const std::vector<std::string> kResume = {"data.train=short.txt",  "train.schedule=constant",
                                          "train.warmup_steps=3",  "train.per_device_batch_size=2",
                                          "model.resid_pdrop=0.1", "model.embd_pdrop=0.1",
                                          "model.attn_pdrop=0.1"};

class Resume : public Train, public ::testing::WithParamInterface<std::pair<int, int>> {};

TEST_P(Resume, EqualsAnUninterruptedRun) {
  const auto [dp, mp] = GetParam();
  write("short.txt", some_text(120).substr(0, 60 * 32));
  Words straight = job("a", dp, mp, kResume), part = job("b", dp, mp, kResume);
  straight.push_back("train.max_steps=20");
  part.push_back("train.max_steps=10");
  good(straight);
  good(part);
  part.back() = "train.max_steps=20";
  const Ran r = good(part);
  EXPECT_THAT(r.err, HasSubstr("resuming from b/checkpoints/step-00000010 (step 10 of 20)"));
  EXPECT_THAT(r.err, Not(HasSubstr("warning")));
  same_checkpoints("a", "b", "step-00000020");
  // The losses of the second half are equal too.
  const auto a = metrics("a"), b = metrics("b");
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i]["step"], b[i]["step"]);
    EXPECT_EQ(a[i]["loss"], b[i]["loss"]);
  }
  // The same command after the end trains no step.
  EXPECT_THAT(good(part).err, HasSubstr("done: 20 steps"));
  same_checkpoints("a", "b", "step-00000020");
}
INSTANTIATE_TEST_SUITE_P(SameMesh, Resume,
                         ::testing::Values(std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1}));

// Muon's momentum, dealt among two replicas, and pieces of a schedule that end at steps.
TEST_F(Train, ResumesMuonAndAScheduleOfPieces) {
  write("short.txt", some_text(120).substr(0, 60 * 32));
  Words more = {"data.train=short.txt",
                "train.optimizer=muon",
                "train.per_device_batch_size=2",
                "train.schedule=[{until_step: 4, from: 0.5, to: 1}, {until_step: 8, shape: exponential, to: "
                "0.25}, {shape: constant}]",
                "parallel.shard_optimizer=true",
                "train.learning_rate=0.01",
                "train.logging_steps=1",
                "train.max_steps=10"};
  good(job("a", 2, 1, more));
  more.back() = "train.max_steps=6";
  good(job("b", 2, 1, more));
  more.back() = "train.max_steps=10";
  EXPECT_THAT(good(job("b", 2, 1, more)).err, HasSubstr("step 6 of 10"));
  same_checkpoints("a", "b", "step-00000010");
  std::map<int, double> rates;
  for (const json& line : metrics("b"))
    if (line.contains("learning_rate")) rates[line["step"]] = line["learning_rate"];
  const std::map<int, double> expected = {{1, 0.005}, {3, 0.0075}, {5, 0.01}, {7, 0.005}, {9, 0.0025}};
  for (const auto& [step, rate] : expected) EXPECT_NEAR(rates.at(step), rate, 1e-9) << step;
}

// State of other shapes than the parameters', sharded over two replicas and two model shards.
TEST_F(Train, ResumesAdafactor) {
  write("short.txt", some_text(120).substr(0, 60 * 32));
  Words more = {"data.train=short.txt",    "train.optimizer=adafactor", "train.learning_rate=0.001",
                "train.schedule=constant", "train.warmup_ratio=0",      "parallel.shard_gradients=true",
                "train.logging_steps=1",   "train.max_steps=8"};
  good(job("a", 2, 2, more));
  more.back() = "train.max_steps=3";
  good(job("b", 2, 2, more));
  more.back() = "train.max_steps=8";
  EXPECT_THAT(good(job("b", 2, 2, more)).err, HasSubstr("step 3 of 8"));
  same_checkpoints("a", "b", "step-00000008");
  const auto saved = tensors(path("a/checkpoints/step-00000008/training/optimizer.safetensors"));
  std::size_t state = 0;
  for (const auto& [name, x] : saved) state += x.size();
  std::size_t all = 0;
  for (const auto& [name, x] : tensors(path("a/checkpoints/step-00000008/model.safetensors")))
    all += x.size();
  EXPECT_LT(state, all / 4);
}

TEST_F(Train, ResumesOnAnotherMesh) {
  write("short.txt", some_text(120).substr(0, 60 * 32));
  // AdamW divides a gradient by its size. Where the gradient is only rounding (biases of the keys), two
  // meshes diverge. An epsilon far above rounding (1e-8) and far below real gradients (1e-2) keeps the
  // comparison meaningful.
  Words more = kResume;
  more.push_back("train.adam_epsilon=1e-4");
  more.push_back("train.max_steps=20");
  good(job("a", 1, 1, more));
  more.back() = "train.max_steps=7";
  good(job("b", 1, 1, more));
  more.back() = "train.max_steps=14";
  const Ran r = good(job("b", 2, 2, more));
  EXPECT_THAT(r.err, AllOf(HasSubstr("warning: [checkpoint]"), HasSubstr("dp 1 x mp 1"),
                           HasSubstr("up to rounding")));
  more.back() = "train.max_steps=20";
  good(job("b", 4, 1, more));
  for (const char* file : {"model.safetensors", "training/optimizer.safetensors"}) {
    const std::string at = std::string("/checkpoints/step-00000020/") + file;
    const auto a = tensors(path("a" + at)), b = tensors(path("b" + at));
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [name, x] : a) {
      const auto& y = b.at(name);
      ASSERT_EQ(x.size(), y.size()) << name;
      double most = 0;
      for (std::size_t i = 0; i < x.size(); ++i)
        most = std::max(most, std::fabs(static_cast<double>(x[i]) - y[i]));
      // Gradients of up to 0.1 summed in another order differ by about 1e-8; divided by epsilon that is 1e-4
      // of a step of 1e-3, in each of 13 steps.
      EXPECT_LT(most, 2e-6) << name;
    }
  }
}

TEST_F(Train, AnotherJobDoesNotResume) {
  good(job("run", 1, 1, {"train.max_steps=2"}));
  refused(job("run", 1, 1, {"train.max_steps=4", "train.seed=7"}), 2,
          {"train.seed=42", "is 7", "checkpoint.resume=never"});
  refused(job("run", 1, 1, {"train.max_steps=4", "train.global_batch_size=4"}), 2,
          {"train.global_batch_size was 8, is 4", "train.global_batch_size=8"});
  write("text.txt", some_text(121));
  refused(job("run", 1, 2, {"train.max_steps=4"}), 2, {"training"});
  good(job("run", 1, 1, {"train.max_steps=4", "train.seed=7", "checkpoint.resume=never"}));
}

TEST_F(Train, AProfileShowsTheTimesOfSomeSteps) {
  const Ran r =
      good(job("run", 1, 2, {"train.max_steps=5", "train.profile.start=2", "train.profile.steps=2"}));
  EXPECT_THAT(r.err, HasSubstr("profile of steps 2 to 3"));
  const json s = json::parse(read("run/profile/summary.json"));
  EXPECT_EQ(s["first_step"], 2);
  EXPECT_EQ(s["n_steps"], 2);
  EXPECT_EQ(s["n_ranks"], 2);
  double phases = 0;
  std::set<std::string> names;
  for (const json& p : s["phases"]) {
    phases += p["seconds"].get<double>();
    names.insert(p["name"]);
  }
  EXPECT_NEAR(phases, s["seconds"], 1e-3 * s["seconds"].get<double>());
  EXPECT_TRUE(names.count("forward") && names.count("backward") && names.count("norm and update"));
  EXPECT_FALSE(s["ops"].empty());
  double kernels = 0;
  for (const json& k : s["kernels"]) kernels += k["seconds"].get<double>();
  EXPECT_GT(kernels, 0);
  EXPECT_LT(kernels, s["seconds"]);
  EXPECT_FALSE(s["collectives"].empty());
  for (const char* rank : {"0", "1"})
    EXPECT_TRUE(json::parse(read(std::string("run/profile/rank-") + rank + ".json")).contains("traceEvents"));
  EXPECT_THAT(good(job("late", 1, 1, {"train.max_steps=2", "train.profile.start=9"})).err,
              HasSubstr("train.profile.start=9 is after the last step 2"));
}

TEST_F(Train, SignalsSaveAndTheSameCommandResumes) {
  struct Case {
    int mp, signal;
  };
  for (const auto& [mp, number] : {Case{1, SIGUSR1}, Case{2, SIGUSR1}, Case{1, SIGTERM}, Case{2, SIGINT}}) {
    const std::string workdir = "w" + std::to_string(mp) + std::to_string(number);
    const Words words =
        job(workdir, 1, mp, {"train.max_steps=1000000", "train.logging_steps=1", "train.schedule=constant"});
    long last = 0;
    for (int round = 0; round < 2; ++round) {
      const pid_t pid = start(words);
      ASSERT_TRUE(until([&] { return has(workdir + "/metrics.jsonl") && metrics_step(workdir) > last; }))
          << read("stderr");
      kill(pid, number);
      const Ran r = wait(pid);
      EXPECT_EQ(r.code, 8) << r.err;
      EXPECT_THAT(r.err, HasSubstr("after step"));
      EXPECT_THAT(r.err, Not(HasSubstr("error:")));
      if (round == 1) EXPECT_THAT(r.err, HasSubstr("resuming from " + workdir + "/checkpoints/step-"));
      const json state = json::parse(read(workdir + "/checkpoints/last/training/state.json"));
      EXPECT_GT(state["step"].get<long>(), last);
      last = state["step"];
    }
  }
}

TEST_F(Train, AKilledSaveIsSkipped) {
  good(job("straight", 1, 1, {"train.max_steps=8", "train.schedule=constant", "train.warmup_steps=2"}));
  const Words first =
      job("run", 1, 1, {"train.max_steps=4", "train.schedule=constant", "train.warmup_steps=2"});
  Words on = first;
  on[on.size() - 3] = "train.max_steps=8";
  good(first);
  // A kill in each kind of system call of the next save; tests/ckpt/publish_test.cpp cuts at every call.
  int killed = 0;
  for (const char* fault : {"write:6:kill", "sync:9:kill", "rename:3:kill", "symlink:1:kill"}) {
    std::filesystem::remove_all(path("again"));
    std::filesystem::copy(
        path("run"), path("again"),
        std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
    Words words = on;
    words[2] = "workdir=again";
    const Ran r = run(words, {{"REDCO_FAULT_IO", fault}});
    killed += r.code == 128 + SIGKILL;
    EXPECT_TRUE(r.code == 128 + SIGKILL || r.code == 0) << fault << ": " << r.code << r.err;
    EXPECT_TRUE(has("again/checkpoints/last/training/manifest.json")) << fault;
    good(words);
    same_checkpoints("straight", "again", "step-00000008");
  }
  EXPECT_GE(killed, 3);
  // A full disk is an error, and the last checkpoint stays.
  std::filesystem::remove_all(path("again"));
  std::filesystem::copy(
      path("run"), path("again"),
      std::filesystem::copy_options::recursive | std::filesystem::copy_options::copy_symlinks);
  Words words = on;
  words[2] = "workdir=again";
  const Ran full = run(words, {{"REDCO_FAULT_IO", "allocate:1:ENOSPC"}});
  EXPECT_EQ(full.code, 7) << full.err;
  EXPECT_EQ(lines_with(full.err, "error: "), 1) << full.err;
  EXPECT_TRUE(has("again/checkpoints/step-00000004/training/manifest.json"));
  EXPECT_FALSE(has("again/checkpoints/step-00000008"));
  // A checkpoint with a truncated file is skipped, and the log has the reason.
  good(words);
  std::filesystem::resize_file(path("again/checkpoints/step-00000008/model.safetensors"), 100);
  const Ran r = good(words);
  EXPECT_THAT(r.err, AllOf(HasSubstr("warning: [checkpoint] skipping again/checkpoints/step-00000008"),
                           HasSubstr("resuming from again/checkpoints/step-00000004")));
  same_checkpoints("straight", "again", "step-00000008");
}

// Saves in the background: the same files and metrics as with saves that are waited for, on each mesh.
TEST_F(Train, AsyncSavesAreTheSame) {
  const Words common = {"train.max_steps=12", "train.schedule=constant", "train.logging_steps=1",
                        "checkpoint.every_n_steps=3", "checkpoint.keep_last=3"};
  for (const auto& [dp, mp] : {std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 1}}) {
    const std::string a = fmt::format("a{}{}", dp, mp), b = fmt::format("b{}{}", dp, mp);
    Words async = common;
    async.push_back("checkpoint.async_save=true");
    good(job(a, dp, mp, common));
    good(job(b, dp, mp, async));
    for (const char* step : {"step-00000006", "step-00000009", "step-00000012"}) same_checkpoints(a, b, step);
    std::vector<std::string> names;
    for (const auto& e : std::filesystem::directory_iterator(path(b + "/checkpoints")))
      names.push_back(e.path().filename());
    EXPECT_THAT(names,
                ::testing::UnorderedElementsAre("last", "step-00000006", "step-00000009", "step-00000012"));
    // A copy of the tensors and a window of 8 MiB for each of the two files; two ranks write one each.
    const auto copy = [&, b = b](const char* file) {
      const std::string bytes = read(b + "/checkpoints/last/" + file);
      std::uint64_t head = 0;
      std::memcpy(&head, bytes.data(), sizeof head);
      return (std::int64_t{1} << 23) + static_cast<std::int64_t>(bytes.size() - sizeof head - head);
    };
    EXPECT_EQ(json::parse(read(b + "/plan.json"))["per_rank"]["checkpoint"],
              copy("training/optimizer.safetensors") + (dp * mp == 1 ? copy("model.safetensors") : 0));
    EXPECT_EQ(json::parse(read(a + "/plan.json"))["per_rank"]["checkpoint"], 0);
    // Published saves are reported with the time that training waited for them; those of one line are added.
    int saves = 0;
    for (const json& m : metrics(b)) {
      if (!m.contains("save_s")) continue;
      ++saves;
      EXPECT_GE(m["save_s"], m["save_stall_s"]);
    }
    EXPECT_GE(saves, 1);
    EXPECT_LE(saves, 3);
    // The resumed run has the same bytes.
    std::filesystem::remove_all(path(b + "/checkpoints/step-00000012"));
    EXPECT_THAT(good(job(b, dp, mp, async)).err, HasSubstr("(step 9 of 12)"));
    same_checkpoints(a, b, "step-00000012");
  }
}

// A kill in each kind of system call of a run that saves in the background; a disk that is full for its
// threads; a signal while a save may be in flight.
TEST_F(Train, AsyncSavesSurviveFaults) {
  const Words common = {"train.max_steps=9", "train.schedule=constant", "train.warmup_steps=2",
                        "checkpoint.every_n_steps=2"};
  good(job("straight", 1, 1, common));
  Words words = job("again", 1, 1, common);
  words.push_back("checkpoint.async_save=true");
  int killed = 0;
  // Each kind of call, in the first save and in later ones.
  for (const char* fault : {"write:7:kill", "write:40:kill", "sync:25:kill", "rename:26:kill",
                            "symlink:2:kill", "unlink:6:kill"}) {
    std::filesystem::remove_all(path("again"));
    const Ran r = run(words, {{"REDCO_FAULT_IO", fault}});
    killed += r.code == 128 + SIGKILL;
    EXPECT_TRUE(r.code == 128 + SIGKILL || r.code == 0) << fault << ": " << r.code << r.err;
    good(words);
    same_checkpoints("straight", "again", "step-00000009");
  }
  EXPECT_GE(killed, 5);
  int full = 0;
  for (const char* fault : {"write:34:ENOSPC", "write:40:ENOSPC", "write:46:ENOSPC"}) {
    std::filesystem::remove_all(path("again"));
    const Ran r = run(words, {{"REDCO_FAULT_IO", fault}});
    if (r.code != 7) continue;
    ++full;
    EXPECT_EQ(lines_with(r.err, "error: "), 1) << r.err;
    EXPECT_THAT(r.err, HasSubstr("No space left on device"));
    EXPECT_TRUE(has("again/checkpoints/last/training/manifest.json")) << fault;
    good(words);
    same_checkpoints("straight", "again", "step-00000009");
  }
  EXPECT_GE(full, 2);
  words = job("signal", 1, 1,
              {"train.max_steps=1000000", "train.logging_steps=1", "train.schedule=constant",
               "checkpoint.every_n_steps=1", "checkpoint.async_save=true"});
  const pid_t pid = start(words);
  ASSERT_TRUE(until([&] { return has("signal/metrics.jsonl") && metrics_step("signal") > 5; }))
      << read("stderr");
  kill(pid, SIGTERM);
  const Ran r = wait(pid);
  EXPECT_EQ(r.code, 8) << r.err;
  const json state = json::parse(read("signal/checkpoints/last/training/state.json"));
  EXPECT_EQ(state["step"].get<long>(), metrics_step("signal"));
}

TEST_F(Train, OneRunAtATimeInAWorkdir) {
  const pid_t pid = start(job("run", 1, 1, {"train.max_steps=1000000", "train.logging_steps=1"}));
  ASSERT_TRUE(until([&] { return has("run/metrics.jsonl") && metrics_step("run") > 0; }));
  std::filesystem::rename(path("stderr"), path("stderr1"));
  std::filesystem::rename(path("stdout"), path("stdout1"));
  for (int mp : {1, 2})
    refused(job("run", 1, mp), 2, {"workdir run is in use by process " + std::to_string(pid)});
  kill(pid, SIGKILL);
  int status = 0;
  waitpid(pid, &status, 0);
  good(job("run", 1, 1, {"train.max_steps=2", "checkpoint.resume=never"}));
}

// With a learning rate of 0 no evaluation is better than the first.
TEST_F(Train, StopsEarlyAndStaysStopped) {
  const std::vector<std::string> more = {"data.eval=text.txt", "train.learning_rate=0",
                                         "eval.every_n_steps=2", "train.early_stopping.metric=loss",
                                         "train.early_stopping.patience=2"};
  const auto with = [&](const std::string& workdir, int steps) {
    Words w = job(workdir, 1, 1, more);
    w.push_back("train.max_steps=" + std::to_string(steps));
    return w;
  };
  const Ran straight = good(with("a", 20));
  EXPECT_THAT(straight.err,
              HasSubstr("early stopping after step 6: loss has not fallen for 2 evaluations; its best was"));
  EXPECT_THAT(straight.err, HasSubstr("done: 6 steps, stopped early"));
  EXPECT_THAT(read("a/log.txt"), HasSubstr("early stopping after step 6"));
  // In two parts: the evaluation at the end of the first part does not count for the whole run.
  good(with("b", 3));
  EXPECT_THAT(good(with("b", 20)).err, HasSubstr("early stopping after step 6"));
  same_checkpoints("a", "b", "step-00000006");
  const auto waiting = [&](const std::string& workdir) {
    return json::parse(read(workdir + "/checkpoints/last/training/state.json"))["early_stopping"];
  };
  EXPECT_EQ(waiting("a"), waiting("b"));
  EXPECT_EQ(waiting("a")["evaluations_since"], 2);
  // The same command again trains no step; with more patience the run continues.
  EXPECT_THAT(good(with("a", 20)).err, HasSubstr("early stopping after step 6"));
  Words patient = with("a", 20);
  std::erase_if(patient,
                [](const std::string& w) { return w.starts_with("train.early_stopping.patience="); });
  patient.push_back("train.early_stopping.patience=3");
  EXPECT_THAT(good(patient).err, HasSubstr("early stopping after step 8"));
  // Impossible settings are errors before training.
  refused(job("c", 1, 1, {"train.early_stopping.metric=loss", "data.eval=text.txt"}), 2,
          {"eval.every_n_steps"});
  refused(job("c", 1, 1, {"train.early_stopping.metric=loss", "eval.every_n_steps=2"}), 2, {"data.eval"});
  refused(job("c", 1, 1, {"train.early_stopping.patience=7"}), 2, {"train.early_stopping.metric"});
  refused(
      job("c", 1, 1, {"train.early_stopping.metric=eval_loss", "eval.every_n_steps=2", "data.eval=text.txt"}),
      2, {"eval_loss"});
}

// 60 windows with batch size 8 are 8 steps per epoch; evaluations by steps and by epochs together.
TEST_F(Train, EvaluatesAndKeepsTheBest) {
  write("short.txt", some_text(120).substr(0, 60 * 32));
  const Words words = job("run", 1, 1,
                          {"data.train=short.txt", "data.eval=text.txt", "train.max_steps=17",
                           "eval.every_n_steps=5", "eval.every_n_epochs=1", "checkpoint.keep_last=1",
                           "checkpoint.save_best_by={min: [loss], max: [perplexity]}",
                           "eval.generation.max_new_tokens=4", "eval.n_outputs=3"});
  good(words);
  std::vector<int> steps;
  for (const json& m : metrics("run"))
    if (m.contains("eval_loss")) steps.push_back(m["step"]);
  EXPECT_EQ(steps, (std::vector<int>{5, 8, 10, 15, 16, 17}));
  // The loss falls, so the last checkpoint is the best; the first one has the highest perplexity.
  const auto target = [&](const std::string& pointer) {
    return std::filesystem::read_symlink(path("run/checkpoints/" + pointer)).string();
  };
  EXPECT_EQ(target("best-loss"), "step-00000017");
  EXPECT_EQ(target("best-perplexity"), "step-00000005");
  EXPECT_EQ(target("last"), "step-00000017");
  EXPECT_FALSE(has("run/checkpoints/step-00000010"));
  // Answers to evaluation examples: the first half of each window is the prompt.
  const std::string outputs = read("run/eval_outputs/step-00000008.jsonl");
  EXPECT_EQ(lines_with(outputs, "{"), 3);
  const json first = json::parse(outputs.substr(0, outputs.find('\n')));
  EXPECT_EQ(first["id"], 0);
  EXPECT_EQ(first["prompt"].get<std::string>() + first["reference"].get<std::string>(),
            some_text(120).substr(0, 32));
  EXPECT_EQ(first["ids"].size(), 4u);
  EXPECT_TRUE(first["prediction"].is_string());
  // A save was killed between the checkpoint and its pointers: the next run corrects the pointers.
  for (const char* pointer : {"best-loss", "last"}) {
    std::filesystem::remove(path(std::string("run/checkpoints/") + pointer));
    std::filesystem::create_directory_symlink("step-00000005",
                                              path(std::string("run/checkpoints/") + pointer));
  }
  good(words);
  EXPECT_EQ(target("best-loss"), "step-00000017");
  EXPECT_EQ(target("last"), "step-00000017");
  // The resolved config has the generation settings only if they are set.
  EXPECT_THAT(good({"train", "run/config.resolved.yaml"}).err, HasSubstr("done: 17 steps"));

  // The report.
  EXPECT_THAT(good({"report", "run"}).err, HasSubstr("written to run/report.html"));
  const std::string page = read("run/report.html");
  for (const char* part :
       {"best-perplexity", "Evaluation perplexity", "dp 1 x mp 1", "memory of the fullest rank",
        "after step 17", ">finished</span>", "max_new_tokens: 4", "Gradient norm"})
    EXPECT_THAT(page, HasSubstr(part));
  EXPECT_EQ(good({"report", "run", "-o", "-"}).out.substr(0, 15), "<!doctype html>");
  refused({"report", "nowhere"}, 2, {"folder nowhere does not exist"});
}

TEST_F(Train, AfterAKillTheMetricsHaveEachStepOnce) {
  const Words words = job("run", 1, 1,
                          {"train.max_steps=1000000", "train.logging_steps=1", "train.schedule=constant",
                           "checkpoint.every_n_steps=20"});
  int kills = 0;
  for (long seen = 0; kills < 3; ++kills) {
    const pid_t pid = start(words);
    ASSERT_TRUE(until([&] { return has("run/metrics.jsonl") && metrics_step("run") >= seen + 30; }))
        << read("stderr");
    kill(pid, SIGKILL);
    EXPECT_EQ(wait(pid).code, 128 + SIGKILL);
    seen = metrics_step("run");
  }
  // Simulates a kill inside a line.
  std::ofstream(path("run/metrics.jsonl"), std::ios::app) << "{\"step\":3";
  std::ofstream(path("run/log.txt"), std::ios::app) << "a torn line";
  Words last = words;
  last[last.size() - 4] = "train.max_steps=" + std::to_string(metrics_step("run") + 5);
  good(last);
  long step = 0;
  for (const json& m : metrics("run")) EXPECT_EQ(m["step"], ++step);
  std::istringstream log(read("run/log.txt"));
  for (std::string line; std::getline(log, line);) EXPECT_EQ(line.rfind("20", 0), 0u) << line;
  EXPECT_THAT(read("run/log.txt"), Not(HasSubstr("torn")));
}

TEST_F(Train, WarningsOfThePlanAreLoggedOnce) {
  for (const int mp : {1, 2}) {
    std::filesystem::remove_all(path("run"));
    const Ran r = good(
        job("run", 1, mp, {"train.max_steps=10", "parallel.sharding_rules=[{match: nothing, spec: [mp]}]"}));
    EXPECT_EQ(lines_with(r.err, "warning"), 1) << r.err;
    EXPECT_EQ(lines_with(read("run/log.txt"), "warning"), 1);
    EXPECT_TRUE(json::parse(read("run/plan.json"))["fits"].get<bool>());
    EXPECT_TRUE(json::parse(read("run/environment.json")).contains("revision"));
  }
}

TEST_F(Train, DryRunStopsAfterThePlan) {
  Words words = job("run", 1, 2);
  words.push_back("--dry-run");
  EXPECT_THAT(good(words).out, AllOf(HasSubstr("dp 1 x mp 2"), HasSubstr("memory of the fullest rank")));
  EXPECT_FALSE(has("run"));
  words.push_back("data.train=nowhere.txt");
  refused(words, 2, {"nowhere.txt"});
}

}  // namespace
}  // namespace redco::test
