#include "check/check.h"

#include "assembly/job_model.h"
#include "commands.h"

namespace redco::cli {

void add_check(CLI::App& app, Invocation& run) {
  struct Options {
    JobArguments job;
    CheckOptions check;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      add_command(app, "check", "Compare the loss and gradients of the job's first step on several meshes",
                  "  redco check job.yaml train.global_batch_size=8\n"
                  "  redco check job.yaml --meshes 1x1,2x1,2x2 --micro 1,4 --json\n"
                  "  redco check job.yaml --meshes 1x1:8,2x1:4,1x2:8     equal rows in all micro-batches\n");
  add_job_words(*c, o->job);
  c->add_option("--meshes", o->check.meshes,
                "meshes to compare, DPxMP (replicas x model shards) or DPxMP:ROWS, separated by commas; the "
                "first is the reference")
      ->capture_default_str();
  c->add_option("--micro", o->check.micro,
                "rows of a replica in a micro-batch, separated by commas; each mesh runs with each number. "
                "Default: 1 and up to 4");
  c->add_flag("--json", o->check.json, "print the report as JSON");
  c->callback(
      [o, &run] { run.exit_code = run_check(o->job.load(model_key_problems), o->check, run.argv.at(0)); });
}

}  // namespace redco::cli
