#include <algorithm>

#include "base/error.h"
#include "commands.h"
#include "commands/predict.h"

namespace redco::cli {

void add_embed(CLI::App& app, Invocation& run) {
  auto words = std::make_shared<JobArguments>();
  CLI::App* c = add_command(
      app, "embed", "Compute embeddings of texts: predict with pipeline embedding",
      "  redco embed model.path=models/all-MiniLM-L6-v2 --prompt 'A man plays guitar'\n"
      "  redco embed model.path=models/all-MiniLM-L6-v2 predict.input=texts.jsonl predict.output=texts.npy\n"
      "  redco embed job.yaml predict.input=texts.txt predict.output=texts.safetensors parallel.n_ranks=4\n"
      "  redco embed workdir=runs/embedding predict.input=texts.csv predict.output=texts.jsonl\n");
  add_job_words(*c, *words);
  add_prompt_options(*c, *words);
  c->callback([words, &run] {
    // Without a job file, the pipeline is known.
    const auto given = words->overrides();
    const bool named =
        std::ranges::any_of(given, [](const std::string& o) { return o.starts_with("pipeline="); });
    if (!words->empty() && words->files().empty() && !named)
      words->words.insert(words->words.begin(), "pipeline=embedding");
    const auto load = [words] {
      JobConfig job = words->load();
      if (job.pipeline != "embedding")
        throw UsageError(
            "[embed] pipeline is {} ({}); redco embed needs pipeline: embedding. `redco predict` "
            "answers with other pipelines",
            job.pipeline, job.origins.where("pipeline"));
      return job;
    };
    run.exit_code = run_predict({.job = load, .program = run.argv});
  });
}

}  // namespace redco::cli
