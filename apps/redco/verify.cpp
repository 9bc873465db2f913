#include "verify/verify.h"

#include <cstdio>

#include "base/error.h"
#include "comm/group.h"
#include "commands.h"
#include "job/job_config.h"
#include "job/session.h"

namespace redco::cli {

void add_verify(CLI::App& app, Invocation& run) {
  struct Options {
    std::string folder, expected;
    i64 ranks = 1, shards = 0;
    bool json = false;
    std::vector<std::string> overrides;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c = app.add_subcommand("verify", "Does a checkpoint compute, under this layout, what another framework computed?");
  c->add_option("DIR", o->folder, "Hugging Face folder")->required();
  c->add_option("EXPECTED", o->expected, "safetensors file of expected values; default: expected.safetensors in DIR. Words with '=' are overrides");
  c->add_option("overrides", o->overrides, "key=value, e.g. parallel.sharding_rules='[{match: \".*\", spec: [mp, ~]}]'");
  c->add_option("--ranks", o->ranks, "ranks to run on")->check(CLI::Range(1, 4096))->capture_default_str();
  c->add_option("--model-shards", o->shards, "ranks that share one copy of the model; default: all of --ranks");
  c->add_flag("--json", o->json, "print the report as JSON");
  c->callback([o, &run] {
    std::vector<std::string> overrides = o->overrides;
    std::string expected = o->expected;
    if (expected.find('=') != std::string::npos && expected.find('/') == std::string::npos) {
      overrides.insert(overrides.begin(), expected);
      expected.clear();
    } else if (expected.find('=') != std::string::npos && expected.rfind("parallel.", 0) == 0) {
      overrides.insert(overrides.begin(), expected);
      expected.clear();
    }
    overrides.push_back("model.path=" + o->folder);
    overrides.push_back(fmt::format("parallel.n_ranks={}", o->ranks));
    overrides.push_back(fmt::format("parallel.n_model_shards={}", o->shards > 0 ? o->shards : o->ranks));
    const JobConfig job = load_job({}, overrides);
    check_job(job, JobUse::verify);
    VerifyRequest request{.folder = o->folder, .expected = expected};
    for (const auto& r : job.parallel.sharding_rules) request.rules.push_back({r.match, r.spec});
    request.config_overrides = job.model.config;
    request.ignore_config_keys = job.model.ignore_config_keys;
    const bool json = o->json;
    run.exit_code = run_session(job.parallel, {.program = run.argv}, [&](Context& c) {
      VerifyReport report;
      report = verify(request);
      if (c.rank() == 0) std::fputs((json ? to_json(report) : to_text(report)).c_str(), stdout);
      return static_cast<int>(report.passed ? ExitCode::ok : ExitCode::check_failed);
    });
  });
}

}  // namespace redco::cli
