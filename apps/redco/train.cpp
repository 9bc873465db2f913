#include "commands/train.h"

#include <cstdio>

#include "commands.h"
#include "commands/plan_job.h"
#include "commands/validate.h"

namespace redco::cli {

void add_train(CLI::App& app, Invocation& run) {
  auto words = std::make_shared<JobArguments>();
  auto dry = std::make_shared<bool>(false);
  CLI::App* c =
      add_command(app, "train", "Train as the job says; goes on where an earlier run in its workdir stopped",
                  "  redco train job.yaml\n"
                  "  redco train job.yaml parallel.n_model_shards=2 workdir=runs/two\n"
                  "  redco train job.yaml --dry-run     stop after the checks and the plan\n");
  add_job_words(*c, *words);
  c->add_flag("--dry-run", *dry, "check the job and everything it names, print its plan, then stop");
  c->callback([words, dry, &run] {
    if (*dry) {
      const JobConfig job = words->load(JobUse::train);
      preflight(job, JobUse::train);
      std::fputs(to_text(plan_job(job)).c_str(), stdout);
    } else {
      run.exit_code = run_train({.job = [words] { return words->load(JobUse::train); }, .program = run.argv},
                                {REDCO_VERSION, build_revision(), build_libraries()});
    }
  });
}

}  // namespace redco::cli
