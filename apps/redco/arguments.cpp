// What commands share: a job's words, --help and --version.
#include "base/error.h"
#include "base/file.h"
#include "comm/group.h"
#include "commands.h"
#include "kernels/threads.h"
#include "launch/env_report.h"

namespace redco::cli {

bool is_override(const std::string& word) { return word.find('=') != std::string::npos && !exists(word); }

namespace {
// Whether a setting or a section is called that.
bool names_key(const std::string& word) {
  try {
    return !word.empty() && !job_help(word).empty();
  } catch (const UsageError&) {
    return false;
  }
}
}  // namespace

std::vector<std::string> JobArguments::files() const {
  std::vector<std::string> out = configs;
  for (const std::string& w : words)
    if (!is_override(w)) out.push_back(w);
  return out;
}
std::vector<std::string> JobArguments::overrides() const {
  std::vector<std::string> out;
  for (const std::string& w : words)
    if (is_override(w)) out.push_back(w);
  return out;
}

JobConfig JobArguments::load() const {
  if (empty()) throw CLI::RequiredError("JOB");
  for (const std::string& w : files())
    if (!exists(w) && names_key(w)) throw UsageError("'{}' is a key without a value; write {}=VALUE", w, w);
  return load_job(files(), overrides());
}

JobConfig JobArguments::load(JobUse use) const {
  JobConfig job = load();
  check_job(job, use);
  return job;
}

void add_job_words(CLI::App& command, JobArguments& words, bool required) {
  command
      .add_option("-c,--config", words.configs,
                  "a job YAML file, as if it stood before JOB; may be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  auto* job = command.add_option(
      "JOB", words.words,
      "job YAML files, later ones laid over earlier ones, and key=value overrides whose values are YAML");
  job->option_text(required ? "TEXT ... REQUIRED" : "TEXT ...");
}

CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& help,
                      const std::string& examples) {
  CLI::App* c = app.add_subcommand(name, help);
  c->set_version_flag("--version", version_text, "version, build and libraries");
  c->footer(examples.empty() ? "" : "Examples:\n" + examples);
  return c;
}

std::string version_text() {
  return fmt::format("redco {} ({})\n{}\n{}", REDCO_VERSION, build_description(), kernels::describe(),
                     mpi_version());
}

}  // namespace redco::cli
