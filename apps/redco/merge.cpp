#include "commands/merge.h"

#include "base/error.h"
#include "base/file.h"
#include "commands.h"

namespace redco::cli {

namespace {

struct Words {
  JobArguments job;
  std::string base, checkpoint;
  MergeOptions merge;
};

JobConfig job_of(const Words& o) {
  const std::vector<std::string> files = o.job.files();
  JobConfig job;
  if (files.size() == 1 && is_folder(files[0])) {
    job = merge_job(files[0], o.base, o.job.overrides());
    if (!o.checkpoint.empty() && !job.workdir)
      throw UsageError("--checkpoint {}: {} is already the folder of an adapter; remove --checkpoint",
                       o.checkpoint, files[0]);
  } else {
    for (const std::string& f : files)
      if (!exists(f))
        throw UsageError("{} does not exist; expected a job file, or the folder of an adapter or a run", f);
    job = o.job.load();
    if (!o.base.empty()) {
      job.model.path = o.base;
      job.origins.set("model.path", "--base", true);
    }
  }
  if (!o.checkpoint.empty()) {
    job.predict.checkpoint = o.checkpoint;
    job.origins.set("predict.checkpoint", "--checkpoint", true);
  }
  return job;
}

}  // namespace

void add_merge(CLI::App& app, Invocation& run) {
  auto o = std::make_shared<Words>();
  CLI::App* c =
      add_command(app, "merge", "Merge a LoRA adapter into its base model; writes a Hugging Face folder",
                  "  redco merge job.yaml --output merged\n"
                  "  redco merge runs/first --checkpoint best-loss --output merged --dtype bf16\n"
                  "  redco merge adapters/mine --base models/gpt2 --output merged\n");
  add_job_words(*c, o->job);
  expand_paths(c->add_option("--output", o->merge.output, "folder to write"))->required();
  expand_paths(
      c->add_option("--base", o->base,
                    "folder of the base model; default: base_model_name_or_path of the adapter's config"));
  c->add_option("--checkpoint", o->checkpoint,
                "checkpoint in the job's workdir: last (default), best-METRIC, or a path");
  c->add_option("--dtype", o->merge.dtype, "type of the merged weights; default: that of the base model")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  c->callback([o, &run] {
    run.exit_code = run_merge({.job = [o] { return job_of(*o); }, .program = run.argv}, o->merge);
  });
}

}  // namespace redco::cli
