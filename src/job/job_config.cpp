#include "job/job_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "ckpt/hub.h"
#include "config/bind.h"
#include "config/dump.h"
#include "config/include.h"
#include "config/overrides.h"
#include "config/reference.h"
#include "job/named_models.h"
#include "job/shipped_jobs.h"
#include "pipeline/load_python.h"
#include "pipeline/shared_objects.h"
#include "pipelines/pipelines.h"

namespace redco {

void JobConfig::visit(SettingsVisitor& v) {
  v.field(
       "pipeline", pipeline,
       "training algorithm: a built-in pipeline, e.g. lm or seq2seq, or the path of a file with a pipeline of "
       "yours: Python, a C++ source, which redco compiles, or a shared object")
      .looks_like("a built-in pipeline's name or a path")
      .path()
      .on_resume(OnResume::error)
      .decided_by(DecidedBy::checkpoint);
  v.field(
       "plugins", plugins,
       "files of yours that add to redco, for every command that reads the job: shared objects or C++ "
       "sources with model families, optimizers, metrics and environments (REDCO_MODEL, REDCO_OPTIMIZER, "
       "REDCO_METRIC, REDCO_ENVIRONMENT), and Python files with classes derived from redco.ModelFamily and redco.Optimizer. A "
       "checkpoint never loads them: name them for predict, evaluate and verify too. On resume, changed "
       "contents are reported")
      .one_or_more()
      .path()
      .on_resume(OnResume::free);
  v.section("model", model, "The model: path, preset or arch selects it")
      .on_resume(OnResume::error)
      .decided_by(DecidedBy::checkpoint);
  v.section("models", models, "More models, by name, for pipelines that use them")
      .decided_by(DecidedBy::overridable);
  v.section("data", data, "Data files, their format, and how they become examples")
      .decided_by(DecidedBy::checkpoint);
  v.section("parallel", parallel, "Number of ranks, their hosts, and the sharding of the model over them");
  v.section("train", train, "Optimizer, batch sizes and length of training");
  v.section("eval", eval,
            "Evaluation on data.eval; without every_n_steps and every_n_epochs, only at the end of training")
      .on_resume(OnResume::free);
  v.section(
       "checkpoint", checkpoint,
       "Saving of checkpoints: at the intervals that are set, at the end of training, and when a signal stops "
       "it")
      .on_resume(OnResume::free);
  v.section("predict", predict, "Prompts, output file and generation settings of predict and chat")
      .on_resume(OnResume::free);
  visit_algorithms(v);
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

namespace {
void find_hub_models(ModelSettings& model) {
  for (auto* source : {&model.path, &model.adapter, &model.tokenizer})
    if (*source && **source != "bytes") *source = ckpt::local_source(**source);
}

// `train.optimizer: ./lion.py` is short for `plugins: [./lion.py]` and `train.optimizer: lion`, and so is
// `model.arch: ./mine.py`.
void name_python_plugins(JobConfig& job) {
  const auto name = [&](const char* setting, std::string& value, const char* klass, auto names) {
    if (!is_python_file(value)) return;
    const std::vector<std::string>& found = load_shared_object(value, setting).*names;
    if (found.size() != 1)
      throw UsageError(
          "{}: {} has {} derived from {} ({}); expected one. With several, set plugins: [{}] and {} "
          "to a name",
          job.origins.where(setting), value, found.empty() ? "no class" : "several classes", klass,
          found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", ")), value, setting);
    if (std::ranges::find(job.plugins, value) == job.plugins.end()) job.plugins.push_back(value);
    value = found[0];
  };
  name("train.optimizer", job.train.optimizer, "redco.Optimizer", &SharedObject::optimizers);
  if (job.model.arch) name("model.arch", *job.model.arch, "redco.ModelFamily", &SharedObject::families);
}
}  // namespace

JobConfig load_job(const std::vector<std::string>& files, const std::vector<std::string>& overrides,
                   const MoreProblems& more) {
  JobConfig job;
  for (const std::string& f : files)
    if (!exists(f))
      for (const ShippedJob& s : shipped_jobs())
        if (f == s.name || f == s.name + ".yaml")
          throw UsageError(
              "job file '{}' does not exist; it is an example of redco: `redco cp {}` copies it here", f,
              s.name);
  job.origins = load_settings(settings_of(job), read_yaml_files(files), overrides, Paths::expanded,
                              [&](const Origins& origins) -> std::vector<std::string> {
                                if (!more) return {};
                                job.origins = origins;
                                try {
                                  name_python_plugins(job);
                                  load_plugins(job);
                                  find_hub_models(job.model);
                                } catch (const UsageError& e) {
                                  return {e.what()};
                                }
                                return more(job);
                              });
  // The default depends on which keys are given. A dump gives every key, so the value is fixed here.
  if (!job.eval.n_outputs) {
    bool given = false;
    for (const Setting& s : settings_of(job.eval.generation))
      given = given || job.origins.given("eval.generation." + s.name);
    job.eval.n_outputs = given ? 16 : 0;
  }
  if (job.data.text_template) {
    if (job.origins.given("data.fields.text") && job.data.fields.text != job.data.text_template)
      throw UsageError("{} and {} both give the text; keep one of them", job.origins.where("data.template"),
                       job.origins.where("data.fields.text"));
    job.data.fields.text = job.data.text_template;
  }
  name_python_plugins(job);
  load_plugins(job);
  find_hub_models(job.model);
  add_reference(job);
  expand_named_models(job);
  return job;
}

std::vector<std::string> user_code_files(const JobConfig& job) {
  std::vector<std::string> out = job.plugins;
  const auto file = file_info(job.pipeline);
  if (!pipeline_info(job.pipeline) && file && file->kind == FileInfo::file) out.push_back(job.pipeline);
  return out;
}

std::vector<std::string> shared_objects(const JobConfig& job) {
  std::vector<std::string> out = user_code_files(job);
  if (out.size() > job.plugins.size() && is_python_file(out.back())) out.pop_back();  // the pipeline
  return out;
}

void load_plugins(const JobConfig& job) {
  for (const std::string& path : job.plugins) load_shared_object(path, "plugins");
  const auto all = shared_objects(job);
  if (all.size() > job.plugins.size()) load_shared_object(all.back(), "pipeline");
}

std::string dump_job(const JobConfig& job) {
  JobConfig copy = job;  // visit() hands out mutable members
  return dump_settings(settings_of(copy));
}

std::string job_schema() {
  JobConfig fresh;
  return json_schema(settings_of(fresh), "redco job", true);
}

std::string job_reference() {
  constexpr const char* kIntroduction = R"text(# The job file

This page is generated from the settings that the code declares. Any other key is an error.

`key=value` on the command line sets a key, e.g. `train.seed=1`. The value is YAML. Values marked
`on the command line as typed` are plain text there: `predict.prompt='# Title'` needs no further
quotes.

**Paths** are relative to the folder in which redco is started. `~/x` is a path in your home folder.
`$NAME` and `${NAME}` are environment variables; an unset one is an error. `$$` is a dollar sign.
`~` alone means no value. `data.train` and `data.eval` also take patterns such as `books/*.txt`. The
files of a pattern are sorted, and a pattern without a match is an error. redco expands paths once,
before it starts the ranks.

In YAML, `~` means that a key has no value. The text after `~:` describes the effect.

**Included files:** `include: base.yaml` or `include: [model.yaml, data.yaml]` at the top level
inherits the keys of other files. These paths are relative to the including file. Its own keys win
over included ones, and a later include wins over an earlier one.

**On resume** is the effect of a changed value when a run resumes from a checkpoint. `error` ends
the command. `note` continues and prints the old and the new value. `free` continues.

**With a checkpoint** names the job that decides the value if predict, evaluate, chat, merge or data
use a checkpoint of redco (`workdir`, `predict.checkpoint`). The checkpoint holds the job of its
training.

- `job`: the job file and the overrides.
- `job, else checkpoint`: the same; if they do not give the value, the checkpoint.
- `checkpoint`: the checkpoint. Another value in the job file is a warning, as an override an error.
- `checkpoint or override`: the checkpoint, unless an override gives another value.

**Only with** names the values of another key without which the key has no effect.

)text";
  JobConfig fresh;
  return kIntroduction + markdown_reference(settings_of(fresh));
}

std::string job_help(const std::string& section_or_key) {
  JobConfig fresh;
  return settings_help(settings_of(fresh), section_or_key);
}

std::vector<std::string> job_keys() {
  JobConfig fresh;
  std::vector<std::string> keys;
  const auto add = [&](const auto& self, const std::vector<Setting>& settings,
                       const std::string& prefix) -> void {
    for (const Setting& s : settings) {
      if (s.kind == Setting::Kind::rest) continue;
      if (s.kind == Setting::Kind::section)
        self(self, s.fields, prefix + s.name + ".");
      else
        keys.push_back(prefix + s.name);
    }
  };
  add(add, settings_of(fresh), "");
  return keys;
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
