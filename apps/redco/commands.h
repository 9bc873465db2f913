// One function per command declares its options. Its callback calls src and prints.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "job/job_config.h"

namespace redco::cli {

// The program's own arguments, which start the ranks, and the exit code of main().
struct Invocation {
  std::vector<std::string> argv;
  int exit_code = 0;
};

void add_train(CLI::App& app, Invocation& run);
void add_plan(CLI::App& app, Invocation& run);
void add_predict(CLI::App& app, Invocation& run);
void add_embed(CLI::App& app, Invocation& run);
void add_chat(CLI::App& app, Invocation& run);
void add_verify(CLI::App& app, Invocation& run);
void add_validate(CLI::App& app, Invocation& run);
void add_check(CLI::App& app, Invocation& run);
void add_bench(CLI::App& app, Invocation& run);
void add_env(CLI::App& app, Invocation& run);
void add_sbatch(CLI::App& app, Invocation& run);
void add_report(CLI::App& app, Invocation& run);
void add_runs(CLI::App& app, Invocation& run);
void add_watch(CLI::App& app, Invocation& run);
void add_tokenizer(CLI::App& app, Invocation& run);
void add_score(CLI::App& app, Invocation& run);
void add_data(CLI::App& app, Invocation& run);
void add_evaluate(CLI::App& app, Invocation& run);
void add_trust(CLI::App& app, Invocation& run);
void add_merge(CLI::App& app, Invocation& run);
void add_hosts(CLI::App& app, Invocation& run);
void add_convert(CLI::App& app, Invocation& run);
void add_env_replay(CLI::App& app, Invocation& run);
void add_new(CLI::App& app, Invocation& run);
void add_ls(CLI::App& app, Invocation& run);
void add_cp(CLI::App& app, Invocation& run);
void add_run(CLI::App& app, Invocation& run);
void add_schema(CLI::App& app, Invocation& run);
void add_completion(CLI::App& app, Invocation& run);
void add_man(CLI::App& app, Invocation& run);

// [-c FILE ...] JOB.yaml ... key=value ...: a word with '=' is an override, unless a file has this name.
struct JobArguments {
  std::vector<std::string> configs, words;
  std::vector<std::string> prompts, prompt_files;  // of --prompt and --prompt-file; "-": standard input
  bool empty() const { return configs.empty() && words.empty(); }
  std::vector<std::string> files() const;
  std::vector<std::string> overrides() const;
  JobConfig load(const MoreProblems& more = nullptr) const;
  // And checks it, the keys of its model, and its files for a use that takes the job's own model.
  JobConfig load(JobUse use) const;
};
bool is_override(const std::string& word);
// Declares the words of a command that takes a job. If they are required, load() reports that they are
// missing.
void add_job_words(CLI::App& command, JobArguments& words, bool required = true);

// Declares --prompt and --prompt-file.
void add_prompt_options(CLI::App& command, JobArguments& words);
// An option whose values are paths: expands them (config/paths.h).
CLI::Option* expand_paths(CLI::Option* option);
// "; redco takes settings as key=value: train.max_steps=5" for a word such as --max_steps that names a
// setting;
// "" otherwise.
std::string setting_hint(const std::string& word, const std::string& next);

// Shell completions of the last of `words` (a command line without the program's name); see completion.cpp.
// One candidate per line, with a tab and its description; ":files" lets the shell add paths.
std::string complete_words(const CLI::App& app, const std::vector<std::string>& words);

// A subcommand with --version, and with examples at the end of its --help.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& help,
                      const std::string& examples);

// "redco 0.2.0 (GCC 12.2.0, optimized)", then the libraries, one per line.
std::string version_text();
// The source's git revision ("1f3a5c7d9e0b", with "-dirty" if files were changed; "" outside of git), and the
// libraries with their versions.
std::string build_revision();
std::string build_libraries();

}  // namespace redco::cli
