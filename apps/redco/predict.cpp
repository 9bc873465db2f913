#include "commands/predict.h"

#include <cstdio>

#include "assembly/trained_job.h"
#include "commands.h"
#include "commands/plan_predict.h"
#include "commands/validate.h"

namespace redco::cli {

void add_predict(CLI::App& app, Invocation& run) {
  auto words = std::make_shared<JobArguments>();
  auto dry = std::make_shared<bool>(false);
  CLI::App* c = add_command(
      app, "predict", "Go on from prompts with a trained or given model",
      "  redco predict workdir=runs/first predict.prompt='Once upon a time'\n"
      "  redco predict job.yaml predict.input=prompts.jsonl predict.output=answers.jsonl\n"
      "  redco predict model.path=models/gpt2 predict.prompt=Hello predict.temperature=0.8 "
      "predict.top_k=40\n"
      "  redco predict job.yaml predict.input=prompts.jsonl predict.num_beams=4 predict.stop='###'\n");
  add_job_words(*c, *words);
  c->add_flag("--dry-run", *dry,
              "check the job and every prompt, print what would be run and its memory, then stop");
  c->callback([words, dry, &run] {
    if (*dry) {
      const TrainedJob trained = trained_job(words->load(), Weights::needed);
      const JobConfig& job = trained.job;
      check_job(job, JobUse::predict);
      preflight(job, JobUse::predict);
      std::fputs(to_text(plan_predict(job)).c_str(), stdout);
    } else {
      run.exit_code = run_predict({.job = [words] { return words->load(); }, .program = run.argv});
    }
  });
}

}  // namespace redco::cli
