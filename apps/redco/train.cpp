#include "commands/train.h"

#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/words.h"
#include "commands.h"
#include "commands/choose_layout.h"
#include "commands/plan_job.h"
#include "commands/plan_request.h"
#include "commands/validate.h"
#include "launch/join/starter.h"
#include "launch/rank_errors.h"
#include "plan/report.h"
#include "run/run.h"

namespace redco::cli {

void add_train(CLI::App& app, Invocation& run) {
  auto words = std::make_shared<JobArguments>();
  auto dry = std::make_shared<bool>(false);
  auto join = std::make_shared<JoinOptions>();
  CLI::App* c = add_command(app, "train", "Train a model; resumes if the workdir holds an earlier run",
                            "  redco train job.yaml\n"
                            "  redco train job.yaml parallel.n_model_shards=2 workdir=runs/two\n"
                            "  redco train job.yaml --dry-run     only checks and plan\n"
                            "  redco train job.yaml --n-processes 2 --process-id 1 --host0-address node1\n");
  add_job_words(*c, *words);
  c->add_flag("--dry-run", *dry,
              "check the job and its files, print the plan, then stop; ends with code 4 if it does not fit");
  c->add_option(
      "--n-processes", join->n_processes,
      "start without ssh: number of redco processes of the job, one on each host; see docs/running.md");
  c->add_option("--process-id", join->process_id, "with --n-processes: number of this process, from 0");
  c->add_option("--host0-address", join->host0_address,
                "with --n-processes: name or address of the host of process 0");
  c->add_option("--host0-port", join->host0_port,
                fmt::format("with --n-processes: port on the host of process 0; default: {}", kJoinPort));
  c->add_option(
      "--key-file", join->key_file,
      "with --n-processes: file with the job's key; default: REDCO_KEY_FILE, else the key in REDCO_KEY");
  c->callback([words, dry, join, &run] {
    if (*dry) {
      JobConfig job = words->load(JobUse::train);
      const Assembly parts = preflight(job, JobUse::train);
      job = with_layout(std::move(job), true);
      const PlanReport plan = plan_job(with_allocation(job), parts);
      std::fputs(to_text(plan).c_str(), stdout);
      if (!plan.fits)
        throw Error(
            ExitCode::doesnt_fit,
            fmt::format("[plan] the job does not fit: a rank needs {} and may use {}. Use a smaller "
                        "train.per_device_batch_size or data.max_length, train.recompute=block, or more "
                        "parallel.n_model_shards",
                        human_bytes(static_cast<u64>(plan.memory.total())),
                        human_bytes(static_cast<u64>(plan.memory_limit))));
    } else {
      auto place = join_place(*join, current_environment());
      std::vector<std::string> job = words->configs;
      job.insert(job.end(), words->words.begin(), words->words.end());
      if (place) place->job = fmt::format("{}", fmt::join(job, " "));
      if (const std::string note = incomplete_place(current_environment());
          !place && !note.empty() && !is_rank_process() && !std::getenv(kStarted))
        warn("{}", note);
      run.exit_code = run_train({.job = [words] { return words->load(JobUse::train); },
                                 .program = run.argv,
                                 .join = std::move(place),
                                 .key_file = join->key_file},
                                {REDCO_VERSION, build_revision(), build_libraries()});
    }
  });
}

}  // namespace redco::cli
