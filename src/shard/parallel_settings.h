// The `parallel:` section: number of ranks, their hosts, and what is sharded over them.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "shard/state_sharding.h"

namespace redco {

// One line of parallel.sharding_rules.
struct ShardingRuleSettings {
  std::string match;
  std::vector<std::optional<std::string>> spec;

  void visit(SettingsVisitor& v) {
    v.field("match", match, "regular expression that matches the whole Hugging Face name of a parameter")
        .required();
    v.field("spec", spec,
            "sharding per dim, in (in, out) order: mp shards the dim over the model shards, ~ replicates it")
        .one_of({"mp"})
        .required();
  }
};

// parallel.environment.
struct EnvironmentSettings {
  std::map<std::string, std::string> values;  // name -> JSON text

  void visit(SettingsVisitor& v) {
    v.rest(
        values,
        "environment variable of every rank on every host: a text or an integer; ~: its value where redco is "
        "started. Files of a run have the names only, since values may be secret");
  }
};

enum class LayoutMode : std::uint8_t { given, automatic };

struct ParallelSettings {
  LayoutMode layout = LayoutMode::given;
  i64 n_model_shards = 1;
  std::optional<i64> n_ranks;
  std::vector<std::string> hosts;
  std::optional<std::string> hostfile;
  std::optional<i64> threads_per_rank;  // nullopt: auto
  EnvironmentSettings environment;
  bool sequence_parallel = false;
  std::vector<ShardingRuleSettings> sharding_rules;
  bool strict = false;

  // The last of the three stages whose key is true: it includes the earlier ones.
  StateSharding sharding() const {
    StateSharding out = StateSharding::none;
    for (const StateSharding s : kSharded)
      if (stages_[static_cast<std::size_t>(s)]) out = s;
    return out;
  }
  void set_sharding(StateSharding sharding) {
    for (const StateSharding s : kSharded) stages_[static_cast<std::size_t>(s)] = s <= sharding;
  }

  void visit(SettingsVisitor& v) {
    v.choice("layout", layout, {{"given", LayoutMode::given}, {"auto", LayoutMode::automatic}},
             "given: the settings of the job and their defaults; auto: training uses the fastest layout that "
             "fits, by its predicted time: the values of n_ranks (on one machine), n_model_shards, "
             "shard_*, train.recompute and train.per_device_batch_size that the job does not give. Needs "
             "train.global_batch_size and the machine's speed (redco env --measure); a resumed run keeps it")
        .on_resume(OnResume::free);
    v.field("n_model_shards", n_model_shards,
            "number of model shards (tensor parallelism): ranks that hold one copy of the model together")
        .at_least(1)
        .at_most(1 << 20)
        .on_resume(OnResume::note);
    v.field("n_ranks", n_ranks,
            "total number of ranks, a multiple of n_model_shards; ~: the slots of all hosts, else the SLURM "
            "allocation, else n_model_shards")
        .at_least(1)
        .at_most(1 << 20)
        .on_resume(OnResume::note);
    v.field(
         "hosts", hosts,
         "hosts to run on, as name or name:slots, as needed with user=, port=, identity= or address= for ssh (`node1:8 "
         "user=ann port=2222`); empty: this machine")
        .one_or_more()
        .on_resume(OnResume::free);
    v.field("hostfile", hostfile, "file with one host per line, as in hosts, or as `name slots=N`")
        .path()
        .on_resume(OnResume::free);
    v.field("threads_per_rank", threads_per_rank,
            "threads per rank; auto: the usable cores of a host divided by its ranks, the smallest such "
            "number over all hosts")
        .at_least(1)
        .at_most(4096)
        .null_means("auto")
        .on_resume(OnResume::note);
    v.section("environment", environment,
              "Environment variables of every rank on every host; they override inherited ones")
        .on_resume(OnResume::free);
    v.field("sequence_parallel", sequence_parallel,
            "sequence parallelism of training: the residual stream, its norms and dropout are sharded over "
            "the tokens; less memory for activations with n_model_shards > 1, as many bytes between ranks")
        .on_resume(OnResume::note);
    stage(v, StateSharding::optimizer,
          "sharding of the optimizer state over the replicas (ZeRO stage 1): less memory, the same numbers")
        .on_resume(OnResume::free);
    stage(v, StateSharding::gradients,
          "sharding of optimizer state and gradients over the replicas (ZeRO stage 2); gradients are reduced "
          "after each micro-batch")
        .on_resume(OnResume::note);
    stage(v, StateSharding::parameters,
          "sharding of optimizer state, gradients and parameters over the replicas (ZeRO stage 3, FSDP); "
          "parameters are gathered where they are used")
        .on_resume(OnResume::note);
    v.items("sharding_rules", sharding_rules,
            "sharding rules that precede the built-in ones; the first match applies")
        .on_resume(OnResume::note);
    v.field("strict", strict,
            "strict sharding: redistributions that the standard rules do not need are errors instead of "
            "warnings")
        .on_resume(OnResume::free);
  }

 private:
  Setting& stage(SettingsVisitor& v, StateSharding s, std::string help) {
    return v.field(name_of(s), stages_[static_cast<std::size_t>(s)], std::move(help));
  }
  std::array<bool, 4> stages_{};  // the values of the three keys, by StateSharding
};

}  // namespace redco
