// How runs tell that they ended, `redco runs`, and `redco report` of several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;

class Runs : public Cli {
 protected:
  void SetUp() override {
    write("text.txt", some_text(120));
    write("job.yaml", kTinyJob);
    std::filesystem::create_directory(path("runs"));
  }
  Words job(const std::string& name, const Words& more = {}) {
    Words w = {"train", "job.yaml", "workdir=runs/" + name, "train.logging_steps=1"};
    w.insert(w.end(), more.begin(), more.end());
    return w;
  }
  std::vector<json> events(const std::string& name) {
    std::vector<json> out;
    std::istringstream in(read("runs/" + name + "/history.jsonl"));
    for (std::string line; std::getline(in, line);) out.push_back(json::parse(line));
    return out;
  }
  json last_event(const std::string& name) { return events(name).back(); }
  // What `redco runs --json` says of it.
  json listed(const std::string& name) {
    std::istringstream in(good({"runs", "--json"}).out);
    for (std::string line; std::getline(in, line);)
      if (json j = json::parse(line); j["workdir"] == "runs/" + name) return j;
    return nullptr;
  }
  // An endless training, when its first step is logged.
  pid_t begun(const std::string& name, const Words& more = {}) {
    Words w = job(name, {"train.max_steps=2000000"});
    w.insert(w.end(), more.begin(), more.end());
    const pid_t pid = start(w);
    EXPECT_TRUE(until([&] {
      return has("runs/" + name + "/metrics.jsonl") && !read("runs/" + name + "/metrics.jsonl").empty();
    }));
    return pid;
  }
};

TEST_F(Runs, AFinishedRun) {
  write("eval.txt", some_text(20, 7));
  good(job("a", {"train.max_steps=6", "data.eval=eval.txt", "eval.every_n_steps=2"}));
  ASSERT_EQ(events("a").size(), 2u);
  EXPECT_EQ(events("a")[0]["event"], "start");
  EXPECT_EQ(events("a")[0]["step"], 0);
  EXPECT_EQ(events("a")[0]["total_steps"], 6);
  EXPECT_EQ(last_event("a")["event"], "finished");
  EXPECT_EQ(last_event("a")["step"], 6);
  const json j = listed("a");
  EXPECT_EQ(j["state"], "finished");
  EXPECT_EQ(j["step"], 6);
  EXPECT_EQ(j["total_steps"], 6);
  EXPECT_EQ(j["pipeline"], "lm");
  EXPECT_NE(j["model"], "");
  EXPECT_GT(j["bytes"].get<long>(), 10000);
  EXPECT_EQ(j["problems"], json::array());
  double least = 1e9;
  std::istringstream in(read("runs/a/metrics.jsonl"));
  for (std::string line; std::getline(in, line);)
    least = std::min(least, json::parse(line).value("eval_loss", 1e9));
  EXPECT_EQ(j["best"]["eval_loss"]["value"], least);
  // Further steps: the resume is in the history and on the page.
  good(job("a",
           {"train.max_steps=8", "data.eval=eval.txt", "eval.every_n_steps=2", "train.schedule=constant"}));
  EXPECT_EQ(events("a")[2]["step"], 6);
  EXPECT_EQ(events("a")[2]["total_steps"], 8);
  EXPECT_THAT(good({"report", "runs/a", "-o", "-"}).out,
              AllOf(HasSubstr(">finished</span>"), HasSubstr("resumed from step 6")));
  // A new run takes the old one's history out of the way.
  good(job("a", {"train.max_steps=3", "checkpoint.resume=never"}));
  EXPECT_EQ(events("a").size(), 2u);
  EXPECT_FALSE(has("runs/a/best.json"));
}

TEST_F(Runs, AStoppedAKilledAndARunningOne) {
  pid_t pid = begun("a");
  EXPECT_EQ(listed("a")["state"], "running");
  EXPECT_THAT(good({"report", "runs/a", "-o", "-"}).out, HasSubstr(">running</span>"));
  // Another training in the same workdir fails and changes nothing.
  const std::string before = read("runs/a/history.jsonl");
  {
    const std::string err = path("stderr2");
    const std::string command = "cd '" + dir_.path() + "' && '" + REDCO_BINARY +
                                "' train job.yaml workdir=runs/a train.max_steps=2000000 2>stderr2";
    EXPECT_NE(std::system(command.c_str()), 0);
    EXPECT_THAT(read("stderr2"), HasSubstr("is in use by"));
  }
  EXPECT_EQ(read("runs/a/history.jsonl"), before);
  kill(pid, SIGTERM);
  EXPECT_EQ(wait(pid).code, 8);
  EXPECT_EQ(last_event("a")["event"], "stopped");
  EXPECT_EQ(last_event("a")["reason"], "SIGTERM");
  EXPECT_EQ(listed("a")["state"], "stopped");
  EXPECT_EQ(listed("a")["step"], last_event("a")["step"]);
  EXPECT_GT(listed("a")["step"].get<long>(), 0);

  pid = begun("b");
  kill(pid, SIGKILL);
  wait(pid);
  EXPECT_EQ(last_event("b")["event"], "start");
  EXPECT_EQ(listed("b")["state"], "killed");
  const std::string page = good({"report", "runs/b", "-o", "-"}).out;
  EXPECT_THAT(page, AllOf(HasSubstr(">killed</span>"), HasSubstr("ended without a record")));
}

TEST_F(Runs, AFailedOneSaysWhy) {
  EXPECT_EQ(run(job("a", {"train.learning_rate=1e30", "train.warmup_steps=0"})).code, 6);
  EXPECT_EQ(last_event("a")["event"], "failed");
  EXPECT_EQ(last_event("a")["code"], 6);
  EXPECT_THAT(last_event("a")["reason"].get<std::string>(), HasSubstr("is not finite"));
  EXPECT_EQ(listed("a")["state"], "failed");
  EXPECT_THAT(
      good({"report", "runs/a", "-o", "-"}).out,
      AllOf(HasSubstr(">failed</span>"), HasSubstr("failed with exit code 6"), HasSubstr("is not finite")));
  // A rank that meets an error adds its number.
  EXPECT_EQ(run(job("b", {"train.learning_rate=1e30", "train.warmup_steps=0", "parallel.n_ranks=2"})).code,
            6);
  EXPECT_EQ(last_event("b")["code"], 6);
  EXPECT_THAT(last_event("b")["reason"].get<std::string>(), ::testing::StartsWith("rank "));
}

// Its launcher tells what a rank can't.
TEST_F(Runs, ARankThatIsKilledIsAFailure) {
  const pid_t pid = begun("a", {"parallel.n_ranks=2", "fault.max_restarts=0"});
  pid_t rank = 0;
  for (const auto& p : std::filesystem::directory_iterator("/proc")) {
    std::error_code gone;
    if (std::filesystem::read_symlink(p.path() / "cwd", gone) != dir_.path()) continue;
    std::ifstream in(p.path() / "environ", std::ios::binary);
    const std::string environment{std::istreambuf_iterator<char>(in), {}};
    if (environment.find("OMPI_COMM_WORLD_RANK=1") != std::string::npos)
      rank = std::atoi(p.path().filename().c_str());
  }
  ASSERT_GT(rank, 0);
  kill(rank, SIGKILL);
  EXPECT_EQ(wait(pid).code, 5);
  EXPECT_EQ(last_event("a")["event"], "failed");
  EXPECT_EQ(last_event("a")["code"], 5);
  EXPECT_EQ(listed("a")["state"], "failed");
}

TEST_F(Runs, ATableOfAll) {
  EXPECT_THAT(good({"runs"}).err, HasSubstr("runs has no runs"));
  good(job("first", {"train.max_steps=4"}));
  good(job("group/second", {"train.max_steps=3"}));
  write("runs/notes.txt", "x");
  std::filesystem::create_directory(path("runs/empty"));
  Ran r = good({"runs"});
  EXPECT_EQ(r.err, "");
  const auto first_words = [](const std::string& text) {
    std::vector<std::string> words;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) words.push_back(line.substr(0, line.find(' ')));
    return words;
  };
  EXPECT_THAT(first_words(r.out), ElementsAre("RUN", "first", "group/second"));
  EXPECT_THAT(r.out, AllOf(HasSubstr("finished"), HasSubstr("4/4"), HasSubstr("3/3"),
                           HasSubstr("training loss"), HasSubstr("KiB"), HasSubstr("lm")));
  EXPECT_EQ(first_words(good({"runs", "runs/"}).out), first_words(r.out));
  write("runs/first/best.json", "nonsense");
  r = good({"runs"});
  EXPECT_THAT(r.err, AllOf(HasSubstr("warning: runs/first: "), HasSubstr("best.json")));
  EXPECT_EQ(lines_with(r.out, "first"), 1);
  refused({"runs", "nowhere"}, 2, {"folder nowhere does not exist"});
  EXPECT_THAT(good({"runs", "--help"}).out, HasSubstr("Examples:"));
  EXPECT_THAT(good({"__complete", "run"}).out, HasSubstr("runs\t"));
  EXPECT_THAT(good({"__complete", "runs", "--"}).out, HasSubstr("--json\t"));
  EXPECT_THAT(good({"man"}).out, HasSubstr(".SS redco runs"));
  // The page that compares them.
  r = good({"report", "runs/first", "runs/group/second", "runs/empty"});
  EXPECT_THAT(r.err, AllOf(HasSubstr("runs/empty is skipped"), HasSubstr("written to comparison.html")));
  EXPECT_THAT(read("comparison.html"), AllOf(HasSubstr("2 runs compared"), HasSubstr("train.max_steps")));
  refused({"report", "runs/empty", "runs/nowhere"}, 2, {"none of these 2 folders"});
}

}  // namespace
}  // namespace redco::test
