#include "job/job_config.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "ckpt/hub.h"
#include "config/yaml.h"
#include "job/shipped_jobs.h"

namespace redco {

void JobConfig::visit(SettingsVisitor& v) {
  v.field("pipeline", pipeline,
          "what is done: a built-in algorithm, such as lm or seq2seq, or one of your own, built as a shared "
          "object")
      .looks_like("a built-in pipeline's name or a path")
      .on_resume(OnResume::error)
      .decided_by(DecidedBy::checkpoint);
  v.section("model", model, "The model: path, preset or arch says which")
      .on_resume(OnResume::error)
      .decided_by(DecidedBy::checkpoint);
  v.section("data", data, "What is trained on and how it is cut into examples")
      .decided_by(DecidedBy::checkpoint);
  v.section("parallel", parallel, "How many ranks, where they run, and what is sharded over them");
  v.section("train", train, "Optimizer, batch sizes and length of the training");
  v.section("eval", eval, "When data.eval is evaluated; with neither every_n given, at the end")
      .on_resume(OnResume::free);
  v.section("checkpoint", checkpoint,
            "When checkpoints are saved and kept; with neither every_n given, at the end")
      .on_resume(OnResume::free);
  v.section("predict", predict, "What is asked of the model, and how it answers").on_resume(OnResume::free);
  v.section("maml", maml, "Tasks and adaptation of pipeline maml").decided_by(DecidedBy::checkpoint);
  v.section("rl", rl, "Environment and algorithm of pipeline rl").decided_by(DecidedBy::either);
  v.section("settings", settings, "What a pipeline of the user's own asks for")
      .on_resume(OnResume::note)
      .decided_by(DecidedBy::overridable);
  v.section("plan", plan, "The machines a plan is made for, where they are not this one")
      .on_resume(OnResume::free);
  v.section("fault", fault, "What happens when a rank fails").on_resume(OnResume::free);
  v.field("workdir", workdir, "folder for checkpoints, metrics and logs of this run")
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
         "This page is generated from the settings that the code declares. A key that is not in these "
         "tables is an error.\n"
         "`key=value` on the command line sets one, e.g. `train.seed=1`; the value is YAML. Paths are "
         "relative to\n"
         "the folder that redco is started in.\n\n"
         "`on resume` says what happens if a value differs when a run resumes from a checkpoint:\n"
         "`error` refuses the job, `note` continues and names the old and the new value, `free` "
         "continues.\n\n"
         "`with a checkpoint` says whose value counts if predict, evaluate, chat, merge or data use a "
         "checkpoint of\n"
         "redco (`workdir`, `predict.checkpoint`). The checkpoint holds the job of its training. `job`: the "
         "job file and\n"
         "the overrides. `job, else checkpoint`: the same, and the checkpoint's value if none is given. "
         "`checkpoint`: a job\n"
         "file with another value causes a warning, an override with another value is an error. "
         "`checkpoint or\n"
         "override`: an override may change the checkpoint's value.\n\n" +
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
