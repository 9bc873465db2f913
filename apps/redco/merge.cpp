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
      throw UsageError("--checkpoint {}: {} is an adapter's folder itself", o.checkpoint, files[0]);
  } else {
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
      add_command(app, "merge", "Merge an adapter (LoRA) with its base into a plain Hugging Face folder",
                  "  redco merge job.yaml --output merged\n"
                  "  redco merge runs/first --checkpoint best-loss --output merged --dtype bf16\n"
                  "  redco merge adapters/mine --base models/gpt2 --output merged\n");
  add_job_words(*c, o->job);
  c->add_option("--output", o->merge.output, "the folder that is made")->required();
  c->add_option("--base", o->base,
                "folder of the model that the adapter is for; default: as its config says");
  c->add_option("--checkpoint", o->checkpoint,
                "of the job's workdir: last (the default), best-..., or a path");
  c->add_option("--dtype", o->merge.dtype, "of the merged weights; default: the base's")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  c->callback([o, &run] {
    run.exit_code = run_merge({.job = [o] { return job_of(*o); }, .program = run.argv}, o->merge);
  });
}

}  // namespace redco::cli
