// parallel.layout: auto, from the plan to a resumed training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "cli/cli_testing.h"

namespace redco::test {
namespace {

using nlohmann::json;

class Layout : public Cli {
 protected:
  void SetUp() override {
    write("text.txt", some_text(120));
    write("job.yaml", kTinyJob);
  }
  // The machine's speed is stated: slow products and a fast memory, or the other way round.
  Words with(const std::string& command, Words more) {
    Words w = {command, "job.yaml", "parallel.layout=auto", "train.global_batch_size=8"};
    w.insert(w.end(), more.begin(), more.end());
    return w;
  }
  const Words fast_ = {"plan.flops_per_s=1e12", "plan.memory_bytes_per_s=1e11", "plan.host_bytes_per_s=1e11"};
};

TEST_F(Layout, TheTrainingUsesThePlansFastestLayoutAndKeepsIt) {
  Words plan = with("plan", fast_);
  plan.insert(plan.end(), {"parallel.n_ranks=2", "--json"});
  const json p = json::parse(good(plan).out);
  const json& best = p["layouts"][0];
  EXPECT_EQ(p["setting"]["dp"], best["dp"]);
  EXPECT_EQ(p["setting"]["mp"], best["mp"]);
  EXPECT_EQ(p["setting"]["per_device_batch_size"], best["per_device_batch_size"]);
  EXPECT_EQ(p["setting"]["sharded_state"], best["sharded_state"]);
  EXPECT_EQ(p["time"]["step_s"], best["step_s"]);
  EXPECT_GT(p["layouts"].size(), 3u);

  Words train = with("train", fast_);
  train.insert(train.end(), {"parallel.n_ranks=2", "workdir=run", "train.max_steps=2"});
  const Ran first = good(train);
  EXPECT_EQ(lines_with(first.err, "[layout] parallel.layout=auto: 2 ranks = dp "), 1) << first.err;
  const std::string resolved = read("run/config.resolved.yaml");
  EXPECT_THAT(resolved, HasSubstr("n_model_shards: " + best["mp"].dump()));
  EXPECT_THAT(resolved, HasSubstr("per_device_batch_size: " + best["per_device_batch_size"].dump()));

  // The run keeps it, whatever is known of the machine now.
  train.back() = "train.max_steps=4";
  std::erase_if(train, [](const std::string& w) { return w.starts_with("plan.host_"); });
  train.insert(train.end(), {"plan.host_bytes_per_s=1e3", "plan.host_latency_s=1"});
  const Ran second = good(train);
  EXPECT_EQ(lines_with(second.err, "[layout] parallel.layout=auto: as in run/checkpoints/step-00000002"), 1)
      << second.err;
  EXPECT_EQ(read("run/config.resolved.yaml").find("n_model_shards: " + best["mp"].dump()),
            resolved.find("n_model_shards: " + best["mp"].dump()));
}

TEST_F(Layout, GivenValuesStay) {
  Words plan = with("plan", fast_);
  plan.insert(plan.end(), {"parallel.n_ranks=2", "parallel.n_model_shards=2", "train.recompute=block",
                           "parallel.shard_optimizer=false", "--json"});
  for (const json& l : json::parse(good(plan).out)["layouts"]) {
    EXPECT_EQ(l["mp"], 2);
    EXPECT_EQ(l["recompute"], "block");
    EXPECT_EQ(l["sharded_state"], "none");
  }
}

TEST_F(Layout, NamesWhatIsMissing) {
  const Ran batch = run({"plan", "job.yaml", "parallel.layout=auto", "train.global_batch_size=~"});
  EXPECT_EQ(batch.code, 2);
  EXPECT_THAT(batch.err, HasSubstr("Set train.global_batch_size"));
  const Ran speed = run(with("train", {"workdir=run"}), {{"XDG_CACHE_HOME", path("cache")}});
  EXPECT_EQ(speed.code, 2);
  EXPECT_THAT(speed.err,
              HasSubstr("needs the speed of this machine. Measure this machine once with `redco env"));
  EXPECT_FALSE(has("run"));
  Words memory = with("plan", fast_);
  memory.push_back("plan.devices=1 x 2 x 1MiB");
  const Ran none = run(memory);
  EXPECT_EQ(none.code, 4);
  EXPECT_THAT(none.err, HasSubstr("[layout] no layout fits: the nearest is 2 ranks = dp "));
}

TEST_F(Layout, Scaling) {
  Words words = with("plan", fast_);
  words.insert(words.end(), {"--scale", "--json", "plan.devices=2 x 2 x 1GiB"});
  const json j = json::parse(good(words).out);
  EXPECT_EQ(j["weak"].size(), 3u);
  EXPECT_EQ(j["strong"].back()["ranks"], 4);
  words.pop_back();
  const Ran r = run(words);
  EXPECT_EQ(r.code, 2);
  EXPECT_THAT(r.err, HasSubstr("Give them with plan.devices="));
}

}  // namespace
}  // namespace redco::test
