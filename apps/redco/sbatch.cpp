#include <cstdio>

#include "assembly/job_model.h"
#include "assembly/trained_job.h"
#include "commands.h"
#include "commands/sbatch_job.h"
#include "job/prepare_job.h"

namespace redco::cli {

void add_sbatch(CLI::App& app, Invocation& run) {
  struct Options {
    JobArguments job;
    SbatchOptions batch;
    bool submit = false;
  };
  auto o = std::make_shared<Options>();
  SbatchOptions& b = o->batch;
  CLI::App* c = add_command(app, "sbatch",
                            "Print a SLURM script for the job; it saves before the time limit and resumes",
                            "  redco sbatch job.yaml parallel.n_ranks=8 --nodes 2 --time 12:00:00 > job.sh\n"
                            "  redco sbatch job.yaml --partition long --submit\n"
                            "  redco sbatch job.yaml --array sweep.yaml --submit\n");
  add_job_words(*c, o->job);
  c->add_flag("--submit", o->submit, "submit the script with sbatch instead of printing it");
  c->add_option("--command", b.command, "command that the script runs")
      ->check(CLI::IsMember({"train", "predict"}))
      ->capture_default_str();
  c->add_option("--nodes", b.nodes, "number of nodes; default: the number of parallel.hosts, else 1")
      ->check(CLI::Range(1, 65536));
  c->add_option("--partition", b.partition, "SLURM partition");
  c->add_option("--account", b.account, "SLURM account");
  c->add_option("--qos", b.qos, "SLURM quality of service");
  c->add_option("--constraint", b.constraint, "features that the nodes must have, e.g. 'zen4&ib'");
  c->add_option("--module", b.modules, "environment module to load before the command; may be repeated");
  c->add_option("--array", b.sweep,
                "YAML file of keys with lists of values: a job array with a task for each combination, in "
                "workdir/task-N; `redco report WORKDIR/task-*` compares them");
  c->add_flag("!--no-requeue", b.requeue, "do not requeue the job after it has saved before its time limit");
  c->add_option("--time", b.time_limit,
                "time limit in SLURM's form: 30, 12:00:00, 2-00:00:00; default: from the predicted time of "
                "train.max_steps, if redco plan can predict it");
  c->add_option("--memory", b.memory, "memory per node, e.g. 64GiB");
  c->add_option("--name", b.job_name, "job name; default: redco- and the name of the job file");
  c->add_option("--output", b.output, "log file of the SLURM job")->capture_default_str();
  c->add_option("--launcher", b.launcher, "how ranks start; auto uses srun if it has PMIx, else mpirun")
      ->check(CLI::IsMember({"auto", "srun", "mpirun"}))
      ->capture_default_str();
  c->callback([o, &run] {
    o->batch.program = run.argv.at(0);
    o->batch.files = o->job.files();
    o->batch.overrides = o->job.overrides();
    o->batch.load = [&](const std::vector<std::string>& more) {
      JobArguments words = o->job;
      words.words.insert(words.words.end(), more.begin(), more.end());
      const bool trains = o->batch.command == "train";
      // A model that predict uses may be trained when the script runs.
      JobConfig job =
          trains ? words.load(model_key_problems) : trained_job(words.load(), Weights::optional).job;
      // Only for the checks: the script repeats the arguments, and the files may not exist yet.
      prepare_job(job, trains ? JobUse::train : JobUse::predict,
                  trains ? MoreProblems(model_key_problems) : nullptr, JobFiles::unchecked);
      return job;
    };
    const std::string script = sbatch_script(o->batch.load({}), o->batch);
    if (o->submit) {
      submit_sbatch(script);
    } else {
      std::fputs(script.c_str(), stdout);
    }
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
