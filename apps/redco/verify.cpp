#include "verify/verify.h"

#include <cstdio>

#include "assembly/job_model.h"
#include "assembly/job_params.h"
#include "base/error.h"
#include "ckpt/hub.h"
#include "comm/group.h"
#include "commands.h"
#include "run/run.h"
#include "shard/mesh_of.h"

namespace redco::cli {

namespace {

struct VerifyOptions {
  std::vector<std::string> words;  // DIR [EXPECTED] key=value ...
  i64 ranks = 1, shards = 0;
  bool json = false, strict = false;
};

int run_verify(const VerifyOptions& o, const std::vector<std::string>& program) {
  std::vector<std::string> files, overrides;
  for (const std::string& w : o.words) (is_override(w) ? overrides : files).push_back(w);
  if (files.empty()) throw UsageError("verify needs a folder: `redco verify DIR [EXPECTED.safetensors]`");
  if (files.size() > 2)
    throw UsageError("verify takes a folder and one file of expected values; remove '{}'", files[2]);
  const i64 shards = o.shards > 0 ? o.shards : o.ranks;
  mesh_of(o.ranks, shards, {.ranks = "--ranks", .shards = "--model-shards"});
  // The user's overrides win over these. The folder is set directly, because its name may not be valid YAML.
  overrides.insert(overrides.begin(), {fmt::format("parallel.n_ranks={}", o.ranks),
                                       fmt::format("parallel.n_model_shards={}", shards)});
  const RunRequest request{.job =
                               [=] {
                                 JobConfig job = load_job({}, overrides);
                                 job.model.path = ckpt::local_source(files[0]);
                                 check_job(job, JobUse::verify);
                                 return job;
                               },
                           .program = program};
  return run(request, [&](Run& run) {
    const JobConfig& job = run.job();
    const VerifyReport report = verify({.folder = *job.model.path,
                                        .expected = files.size() > 1 ? files[1] : "",
                                        .rules = custom_rules(job),
                                        .sharding = job.parallel.sharding(),
                                        .config_overrides = job.model.config,
                                        .ignore_config_keys = job.model.ignore_config_keys,
                                        .origins = job.origins,
                                        .strict = o.strict});
    if (run.first()) std::fputs((o.json ? to_json(report) : to_text(report)).c_str(), stdout);
    return static_cast<int>(report.passed ? ExitCode::ok : ExitCode::check_failed);
  });
}

}  // namespace

void add_verify(CLI::App& app, Invocation& run) {
  auto o = std::make_shared<VerifyOptions>();
  CLI::App* c = add_command(
      app, "verify", "Compare a checkpoint's outputs and gradients with those of another framework",
      "  redco verify models/gpt2 --ranks 4 --model-shards 2\n"
      "  redco verify models/gpt2 expected.safetensors --strict --json\n"
      "  redco verify models/gpt2 --ranks 2 parallel.sharding_rules='[{match: \".*\", spec: [mp, ~]}]'\n");
  c->add_option(
       "DIR", o->words,
       "Hugging Face folder, or the id of a model in the hub's cache; then optionally a safetensors file of "
       "expected values (default: expected.safetensors in the folder) and key=value overrides")
      ->required();
  c->add_option("--ranks", o->ranks, "number of ranks")->check(CLI::Range(1, 4096))->capture_default_str();
  c->add_option("--model-shards", o->shards, "ranks that share one copy of the model; default: --ranks")
      ->check(CLI::Range(1, 4096));
  c->add_flag("--strict", o->strict,
              "end with code 1 if an expected tensor is not checked, e.g. because its name is unknown");
  c->add_flag("--json", o->json, "print the report as JSON");
  c->callback([o, &run] { run.exit_code = run_verify(*o, run.argv); });
}

}  // namespace redco::cli
