#include "base/log.h"
#include "commands.h"
#include "job/job_config.h"
#include "job/run.h"

namespace redco::cli {

namespace {

// A job command: JOB.yaml ... key=value ...
void add_job_command(CLI::App& app, Invocation& run, const char* name, const char* help, JobUse use,
                     int (*go)(const JobConfig&, const std::vector<std::string>&)) {
  auto words = std::make_shared<JobArguments>();
  CLI::App* c = app.add_subcommand(name, help);
  c->add_option("JOB", words->words, "job YAML files, later ones laid over earlier ones, and key=value overrides")->required();
  c->callback([words, use, go, &run] {
    const JobConfig job = load_job(words->files(), words->overrides());
    check_job(job, use);
    run.exit_code = go(job, run.argv);
  });
}

}  // namespace

void add_train(CLI::App& app, Invocation& run) {
  add_job_command(app, run, "train", "Train as the job says; goes on where an earlier run in its workdir stopped", JobUse::train, run_train);
  add_job_command(app, run, "predict", "Answer prompts with a trained or given model", JobUse::predict, run_predict);
}

std::vector<std::string> JobArguments::files() const {
  std::vector<std::string> out;
  for (const std::string& w : words)
    if (w.find('=') == std::string::npos) out.push_back(w);
  return out;
}
std::vector<std::string> JobArguments::overrides() const {
  std::vector<std::string> out;
  for (const std::string& w : words)
    if (w.find('=') != std::string::npos) out.push_back(w);
  return out;
}

}  // namespace redco::cli
