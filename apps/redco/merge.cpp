#include "commands/merge.h"

#include "base/error.h"
#include "base/file.h"
#include "commands.h"

namespace redco::cli {

namespace {

struct MergeOptions {
  JobArguments words;
  std::string base, output, checkpoint, dtype;
};

MergeRequest request_of(const MergeOptions& o) {
  const std::vector<std::string> files = o.words.files();
  const bool folder = files.size() == 1 && is_folder(files[0]);
  MergeRequest r;
  if (folder) {
    r = merge_request(files[0], o.base, o.words.overrides());
    if (!o.checkpoint.empty() && !r.job.workdir)
      throw UsageError("--checkpoint {}: {} is an adapter's folder itself", o.checkpoint, files[0]);
  } else {
    r.job = o.words.load();
    if (!o.base.empty()) r.job.model.path = o.base;
    if (r.job.workdir && !r.job.model.adapter) r.checkpoint = "last";
  }
  if (!o.checkpoint.empty()) r.checkpoint = o.checkpoint;
  r.output = o.output;
  r.dtype = o.dtype;
  return r;
}

}  // namespace

void add_merge(CLI::App& app, Invocation& run) {
  auto o = std::make_shared<MergeOptions>();
  CLI::App* c =
      add_command(app, "merge", "Merge an adapter (LoRA) with its base into a plain Hugging Face folder",
                  "  redco merge job.yaml --output merged\n"
                  "  redco merge runs/first --checkpoint best-loss --output merged --dtype bf16\n"
                  "  redco merge adapters/mine --base models/gpt2 --output merged\n");
  add_job_words(*c, o->words);
  c->add_option("--output", o->output, "the folder that is made")->required();
  c->add_option("--base", o->base,
                "folder of the model that the adapter is for; default: as its config says");
  c->add_option("--checkpoint", o->checkpoint,
                "of the job's workdir: last (the default), best-..., or a path");
  c->add_option("--dtype", o->dtype, "of the merged weights; default: the base's")
      ->check(CLI::IsMember({"fp32", "bf16"}));
  c->callback([o, &run] { run.exit_code = run_merge(request_of(*o), run.argv); });
}

}  // namespace redco::cli
