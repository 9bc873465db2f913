#include "plan/plan.h"

#include <cstdio>

#include "assembly/job_model.h"
#include "base/error.h"
#include "commands.h"
#include "commands/plan_job.h"

namespace redco::cli {

void add_plan(CLI::App& app, Invocation& run) {
  struct Options {
    JobArguments words;
    bool json = false, require_fit = false, predict = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      add_command(app, "plan", "Plan a job without running it: mesh, sharding, memory, collectives, time",
                  "  redco plan job.yaml\n"
                  "  redco plan model.preset=gpt-j-6b parallel.n_model_shards=4\n"
                  "  redco plan model.preset=opt-13b plan.devices='2 x 4 x 32GiB' --json\n");
  add_job_words(*c, o->words);
  c->add_flag("--json", o->json, "print the plan as JSON");
  c->add_flag("--require-fit", o->require_fit, "end with code 4 if the job does not fit into memory");
  c->add_flag("--predict", o->predict, "plan the speed of generation, with the shapes of bench --predict");
  c->callback([o, &run] {
    if (o->predict) {
      const GenerationPlan plan = plan_generation(o->words.load(model_key_problems));
      std::fputs((o->json ? to_json(plan) : to_text(plan)).c_str(), stdout);
      return;
    }
    const PlanReport report = plan_job(o->words.load(model_key_problems), true);
    std::fputs((o->json ? to_json(report) : to_text(report)).c_str(), stdout);
    if (o->require_fit && !report.fits) run.exit_code = static_cast<int>(ExitCode::doesnt_fit);
  });
}

}  // namespace redco::cli
