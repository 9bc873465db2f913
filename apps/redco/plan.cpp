#include "plan/plan.h"

#include <cstdio>

#include "assembly/job_model.h"
#include "base/error.h"
#include "commands.h"
#include "commands/choose_layout.h"
#include "commands/plan_job.h"
#include "plan/report.h"

namespace redco::cli {

void add_plan(CLI::App& app, Invocation& run) {
  struct Options {
    JobArguments words;
    bool json = false, require_fit = false, predict = false, scale = false;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      add_command(app, "plan", "Plan a job without running it: mesh, sharding, memory, collectives, time",
                  "  redco plan job.yaml\n"
                  "  redco plan model.preset=gpt-j-6b parallel.n_model_shards=4\n"
                  "  redco plan model.preset=opt-13b plan.devices='2 x 4 x 32GiB' --json\n"
                  "  redco plan job.yaml parallel.layout=auto     the fastest layouts that fit\n"
                  "  redco plan --scale model.preset=opt-66b train.global_batch_size=1024 "
                  "plan.devices='128 x 8 x 80GiB'\n"
                  "    plan.flops_per_s=1e14 plan.memory_bytes_per_s=1.5e12\n");
  add_job_words(*c, o->words);
  c->add_flag("--json", o->json, "print the plan as JSON");
  c->add_flag("--require-fit", o->require_fit, "end with code 4 if the job does not fit into memory");
  c->add_flag("--predict", o->predict, "plan the speed of generation, with the shapes of bench --predict");
  c->add_flag("--scale", o->scale, "predict the speed on plan.devices and on fewer of them")
      ->excludes("--predict");
  c->callback([o, &run] {
    if (o->scale) {
      const Scaling scaling = plan_scaling(o->words.load(model_key_problems));
      std::fputs((o->json ? to_json(scaling) : to_text(scaling)).c_str(), stdout);
      return;
    }
    if (o->predict) {
      const GenerationPlan plan = plan_generation(o->words.load(model_key_problems));
      std::fputs((o->json ? to_json(plan) : to_text(plan)).c_str(), stdout);
      return;
    }
    JobConfig job = o->words.load(model_key_problems);
    std::optional<LayoutChoice> layouts;
    if (job.parallel.layout == LayoutMode::automatic) {
      layouts = choose_layout(std::move(job));
      job = layouts->job;
    }
    const PlanReport report = plan_job(job, true);
    std::string text = o->json ? to_json(report) : to_text(report);
    if (layouts) text = o->json ? with_layouts(text, *layouts) : text + to_text(*layouts);
    std::fputs(text.c_str(), stdout);
    if (o->require_fit && !report.fits) run.exit_code = static_cast<int>(ExitCode::doesnt_fit);
  });
}

}  // namespace redco::cli
