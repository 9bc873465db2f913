#include "commands/evaluate.h"

#include "commands.h"

namespace redco::cli {

void add_evaluate(CLI::App& app, Invocation& run) {
  auto words = std::make_shared<JobArguments>();
  CLI::App* c =
      add_command(app, "evaluate", "Evaluate a model on data.eval; prints its metrics as JSON",
                  "  redco evaluate job.yaml\n"
                  "  redco evaluate workdir=runs/first data.eval=book.txt predict.checkpoint=best-loss\n"
                  "  redco evaluate model.path=models/gpt2 data.eval=book.txt data.max_length=1024\n");
  add_job_words(*c, *words);
  c->callback([words, &run] {
    run.exit_code = run_evaluate({.job = [words] { return words->load(); }, .program = run.argv});
  });
}

}  // namespace redco::cli
