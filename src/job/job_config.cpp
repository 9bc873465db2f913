#include "job/job_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "ckpt/hub.h"
#include "config/yaml.h"
#include "job/shipped_jobs.h"

namespace redco {

void JobConfig::visit(SettingsVisitor& v) {
  v.field(
       "pipeline", pipeline,
       "training algorithm: a built-in pipeline, e.g. lm or seq2seq, or the path of a shared object with a "
       "pipeline of yours")
      .looks_like("a built-in pipeline's name or a path")
      .on_resume(OnResume::error)
      .decided_by(DecidedBy::checkpoint);
  v.section("model", model, "The model: path, preset or arch selects it")
      .on_resume(OnResume::error)
      .decided_by(DecidedBy::checkpoint);
  v.section("data", data, "Data files, their format, and how they become examples")
      .decided_by(DecidedBy::checkpoint);
  v.section("parallel", parallel, "Number of ranks, their hosts, and the sharding of the model over them");
  v.section("train", train, "Optimizer, batch sizes and length of training");
  v.section("eval", eval,
            "Evaluation on data.eval; without every_n_steps and every_n_epochs, only at the end of training")
      .on_resume(OnResume::free);
  v.section("checkpoint", checkpoint,
            "Saving of checkpoints; without every_n_steps and every_n_epochs, only at the end of training")
      .on_resume(OnResume::free);
  v.section("predict", predict, "Prompts, output file and generation settings of predict and chat")
      .on_resume(OnResume::free);
  v.section("maml", maml, "Tasks and inner loop of model-agnostic meta-learning")
      .only_with("pipeline", {"maml"})
      .decided_by(DecidedBy::checkpoint);
  v.section("rl", rl, "Environment and algorithm of reinforcement learning")
      .only_with("pipeline", {"rl"})
      .decided_by(DecidedBy::either);
  v.section("settings", settings, "Settings of a user's pipeline")
      .on_resume(OnResume::note)
      .decided_by(DecidedBy::overridable);
  v.section("plan", plan, "Machines to plan for").on_resume(OnResume::free);
  v.section("fault", fault, "Detection of failed ranks and differing replicas").on_resume(OnResume::free);
  v.field("workdir", workdir, "folder for the checkpoints, metrics and logs of this run")
      .path()
      .on_resume(OnResume::free);
}

std::string OwnSettings::json() const {
  std::string out = "{";
  for (const auto& [key, value] : values)
    out += (out.size() > 1 ? "," : "") + nlohmann::json(key).dump() + ":" + value;
  return out + "}";
}

JobConfig load_job(const std::vector<std::string>& files, const std::vector<std::string>& overrides) {
  JobConfig job;
  for (const std::string& f : files)
    if (!exists(f))
      for (const ShippedJob& s : shipped_jobs())
        if (f == s.name || f == s.name + ".yaml")
          throw UsageError("job file '{}' does not exist; it comes with redco: `redco cp {}` writes it here",
                           f, s.name);
  job.origins = load_settings(settings_of(job), read_yaml_files(files), overrides);
  // Said outright, so that a dump of this job means the same: there every key is given.
  if (!job.eval.n_outputs) {
    bool given = false;
    for (const Setting& s : settings_of(job.eval.generation))
      given = given || job.origins.given("eval.generation." + s.name);
    job.eval.n_outputs = given ? 16 : 0;
  }
  for (auto* source : {&job.model.path, &job.model.adapter, &job.model.tokenizer})
    if (*source && **source != "bytes") *source = ckpt::local_source(**source);
  return job;
}

std::string dump_job(const JobConfig& job) {
  JobConfig copy = job;  // visit() hands out mutable members
  return dump_settings(settings_of(copy));
}

std::string job_schema() {
  JobConfig fresh;
  return json_schema(settings_of(fresh), "redco job");
}

std::string job_reference() {
  JobConfig fresh;
  return "# The job file\n\n"
         "This page lists every key of the job file. It is generated from the settings that the code "
         "declares.\n"
         "A key that is not on this page is an error. `key=value` on the command line sets a key, e.g.\n"
         "`train.seed=1`; the value is YAML. Paths are relative to the folder where redco starts.\n\n"
         "In YAML, `~` means that a key has no value; the text after `~:` says what happens then.\n"
         "**On resume** is what happens if a value has changed when a run resumes from a checkpoint:\n"
         "`error` refuses the job, `note` continues and logs the old and the new value, `free` continues.\n"
         "**With a checkpoint** says whose value counts if predict, evaluate, chat, merge or data use a\n"
         "checkpoint of redco (`workdir`, `predict.checkpoint`), which contains the job of its training:\n"
         "- `job` (if nothing is given here): the value of the job file and the overrides.\n"
         "- `job, else checkpoint`: the same, or the checkpoint's value if the job has none.\n"
         "- `checkpoint`: the checkpoint's value. Another value in the job file is a warning, an override\n"
         "  with another value is an error.\n"
         "- `checkpoint or override`: the checkpoint's value, unless an override changes it.\n\n"
         "**Only with** names the values of another key without which the key has no effect.\n\n" +
         markdown_reference(settings_of(fresh));
}

std::string job_help(const std::string& section_or_key) {
  JobConfig fresh;
  return settings_help(settings_of(fresh), section_or_key);
}

std::string complete_job_override(const std::string& word) {
  JobConfig fresh;
  const auto settings = settings_of(fresh);
  std::string out;
  for (const Candidate& c : complete_override(settings, word)) out += c.text + "\t" + c.help + "\n";
  const auto equals = word.find('=');
  if (equals == std::string::npos || takes_path(settings, word.substr(0, equals))) out += ":files\n";
  return out;
}

}  // namespace redco
