#include "commands/predict.h"

#include <cstdio>

#include "assembly/trained_job.h"
#include "commands.h"
#include "commands/plan_predict.h"
#include "commands/validate.h"
#include "job/prepare_job.h"

namespace redco::cli {

void add_predict(CLI::App& app, Invocation& run) {
  auto words = std::make_shared<JobArguments>();
  auto dry = std::make_shared<bool>(false);
  CLI::App* c = add_command(
      app, "predict", "Generate text from prompts, or predict rows, with a trained model",
      "  redco predict workdir=runs/first --prompt 'Once upon a time'\n"
      "  redco predict job.yaml predict.input=prompts.jsonl predict.output=answers.jsonl\n"
      "  redco predict model.path=models/gpt2 --prompt Hello predict.temperature=0.8 predict.top_k=40\n"
      "  redco predict job.yaml predict.input=prompts.jsonl predict.num_beams=4 predict.stop='###'\n"
      "  git log -1 | redco predict job.yaml --prompt-file -     the prompt is standard input\n");
  add_job_words(*c, *words);
  add_prompt_options(*c, *words);
  c->add_flag("--dry-run", *dry, "check the job and all prompts, print the plan and its memory, then stop");
  c->callback([words, dry, &run] {
    if (*dry) {
      TrainedJob trained = trained_job(words->load(), Weights::needed);
      JobConfig& job = trained.job;
      prepare_job(job, JobUse::predict);
      preflight(job, JobUse::predict);
      std::fputs(to_text(plan_predict(job)).c_str(), stdout);
    } else {
      run.exit_code = run_predict({.job = [words] { return words->load(); }, .program = run.argv});
    }
  });
}

}  // namespace redco::cli
