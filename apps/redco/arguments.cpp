// Parts that commands share: the words of a job, prompts, --help and --version.
#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>

#include "assembly/job_model.h"
#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "base/words.h"
#include "comm/group.h"
#include "commands.h"
#include "config/paths.h"
#include "job/prepare_job.h"
#include "kernels/threads.h"
#include "launch/env_report.h"

namespace redco::cli {

bool is_override(const std::string& word) { return word.find('=') != std::string::npos && !exists(word); }

namespace {
// Whether a setting or a section has this name.
bool names_key(const std::string& word) {
  try {
    return !word.empty() && !job_help(word).empty();
  } catch (const UsageError&) {
    return false;
  }
}

// A key that is given twice is a mistake. A shell makes two words of data.train={a,b}.txt.
void check_given_once(const std::vector<std::string>& overrides) {
  std::map<std::string, std::string> given;
  for (const std::string& o : overrides) {
    const auto equals = o.find('=');
    const std::string key = o.substr(0, equals);
    const auto [before, first] = given.emplace(key, o);
    if (first || before->second == o) continue;
    const std::string one = before->second.substr(equals + 1), two = o.substr(equals + 1);
    const bool files = key.starts_with("data.") && one.find('.') != one.npos && two.find('.') != two.npos;
    throw UsageError("overrides '{}' and '{}' set the same key; keep one{}", excerpt(before->second),
                     excerpt(o),
                     files ? fmt::format(". Several files are a list: '{}=[{},{}]'", key, one, two) : "");
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

namespace {

constexpr i64 kMaxPromptBytes = i64{1} << 20;

// The whole text of a file.
std::string prompt_of(const std::string& file) {
  const bool input = file == "-";
  std::string text;
  if (input) {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    if (is_folder(file)) throw UsageError("--prompt-file {}: this is a folder; expected a text file", file);
    text = read_file(file, kMaxPromptBytes);
  }
  const std::string name = input ? "standard input" : file;
  if (static_cast<i64>(text.size()) > kMaxPromptBytes)
    throw ContentsError("[predict] {} has more than {}; use predict.input for many prompts", name,
                        human_bytes(static_cast<u64>(kMaxPromptBytes)));
  if (text.empty()) throw ContentsError("[predict] {} is empty; expected the text of a prompt", name);
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string::npos)
    throw ContentsError("[predict] {} is not UTF-8 text (byte 0x{:02x} at offset {}); save it as UTF-8", name,
                        static_cast<unsigned char>(text[bad]), bad);
  return text;
}

}  // namespace

JobConfig JobArguments::load(const MoreProblems& more) const {
  if (empty()) throw CLI::RequiredError("JOB");
  for (const std::string& w : files())
    if (w == "help" && !exists(w))
      throw UsageError("job file 'help' does not exist; add --help for the help");
  for (const std::string& w : files())
    if (!exists(w) && w.find_first_of(" \t\n") != std::string::npos)
      throw UsageError("'{}' is neither a job file nor key=value. A prompt is given as --prompt '{}'",
                       excerpt(w), excerpt(w));
  for (const std::string& w : files())
    if (!exists(w) && names_key(w)) throw UsageError("'{}' is a key without a value; write {}=VALUE", w, w);
  check_given_once(overrides());
  JobConfig job = load_job(files(), overrides(), more);
  if (prompts.empty() && prompt_files.empty()) return job;
  for (const std::string& o : overrides())
    if (o.starts_with("predict.prompt="))
      throw UsageError("--prompt{} and predict.prompt= are both given; keep one",
                       prompts.empty() ? "-file" : "");
  job.predict.prompt = prompts;
  for (const std::string& file : prompt_files) job.predict.prompt.push_back(prompt_of(file));
  job.origins.set("predict.prompt", prompts.empty() ? "--prompt-file" : "--prompt", true);
  return job;
}

JobConfig JobArguments::load(JobUse use) const {
  JobConfig job = load(model_key_problems);
  prepare_job(job, use, model_key_problems);
  return job;
}

void add_job_words(CLI::App& command, JobArguments& words, bool required) {
  command.add_option("-c,--config", words.configs, "job file, read before JOB; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  auto* job = command.add_option(
      "JOB", words.words, "job files, where later ones win, and key=value overrides, whose values are YAML");
  job->option_text(required ? "TEXT ... REQUIRED" : "TEXT ...");
}

void add_prompt_options(CLI::App& command, JobArguments& words) {
  // With extra arguments CLI11 would split a text such as "[INST] [/INST]" into a list.
  command
      .add_option("--prompt", words.prompts, "prompt, taken as typed; repeat the option for several prompts")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  expand_paths(
      command.add_option("--prompt-file", words.prompt_files,
                         "file whose whole text is one prompt; - is standard input; may be repeated"))
      ->type_name("FILE")
      ->allow_extra_args(false);
}

CLI::Option* expand_paths(CLI::Option* option) {
  return option->transform(CLI::Validator(
      [](std::string& path) -> std::string {
        try {
          path = expand_path(path);
        } catch (const UsageError& e) {
          return e.what();  // CLI11 adds the option's name
        }
        return "";
      },
      ""));
}

std::string setting_hint(const std::string& word, const std::string& next) {
  const auto equals = word.find('=');
  std::string name = word.substr(0, equals);
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  std::string value = equals != std::string::npos ? word.substr(equals + 1) : next;
  if (value.empty()) value = "VALUE";
  std::vector<std::string> keys, hits;
  for (const std::string& key : job_keys()) {
    keys.push_back(key);
    if (key == name || key.ends_with("." + name) || key.ends_with("_" + name)) hits.push_back(key);
  }
  if (hits.empty()) {
    std::vector<std::string> leaves;
    for (const std::string& key : keys) leaves.push_back(key.substr(key.rfind('.') + 1));
    const std::string near = nearest(name, name.find('.') == std::string::npos ? leaves : keys);
    for (std::size_t i = 0; i < keys.size() && !near.empty(); ++i)
      if (keys[i] == near || leaves[i] == near) hits.push_back(keys[i]);
  }
  if (hits.empty() || hits.size() > 4) return "";
  for (std::string& key : hits) key += "=" + excerpt(value);
  return fmt::format("; settings are given as key=value: {}", fmt::join(hits, " or "));
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
