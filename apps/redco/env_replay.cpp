#include <cstdio>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "commands.h"
#include "env/replay.h"

namespace redco::cli {

void add_env_replay(CLI::App& app, Invocation& run) {
  struct Options {
    std::string trace, environment;
    double tolerance = 2e-6;
    bool json = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(app, "env-replay", "Compare an RL environment with a recorded trace",
                            "  redco env-replay Pendulum-v1.jsonl\n"
                            "  redco env-replay trace.jsonl --env CartPole-v1 --json\n");
  c->add_option("TRACE", o->trace,
                "JSONL, plain, .gz or .zst: resets {reset_observation, internal_state} and steps {action, "
                "observation, reward, terminated, truncated, internal_state}")
      ->required();
  c->add_option("--env", o->environment, "environment; default: the file's name");
  c->add_option("--tolerance", o->tolerance, "allowed absolute and relative difference per step")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  c->add_flag("--json", o->json, "print the report as JSON");
  c->callback([o, &run] {
    const ReplayReport r = replay_trace(o->trace, o->environment, o->tolerance);
    if (o->json) {
      const nlohmann::ordered_json j = {
          {"environment", r.environment}, {"episodes", r.episodes},       {"steps", r.steps},
          {"observation", r.observation}, {"reward", r.reward},           {"state", r.state},
          {"wrong_ends", r.wrong_ends},   {"first_wrong", r.first_wrong}, {"passed", r.passed}};
      std::puts(j.dump().c_str());
    } else {
      std::printf(
          "%s: %lld steps of %lld episodes; largest differences: observation %.2e, reward %.2e, state "
          "%.2e\n%s\n",
          r.environment.c_str(), static_cast<long long>(r.steps), static_cast<long long>(r.episodes),
          r.observation, r.reward, r.state, r.passed ? "passed" : ("FAILED " + r.first_wrong).c_str());
    }
    run.exit_code = static_cast<int>(r.passed ? ExitCode::ok : ExitCode::check_failed);
  });
}

}  // namespace redco::cli
