// One function a command: declares its options; the callback parses, calls src, prints.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "job/job_config.h"

namespace redco::cli {

// The program's own arguments, for starting ranks, and what main() returns.
struct Invocation {
  std::vector<std::string> argv;
  int exit_code = 0;
};

void add_train(CLI::App& app, Invocation& run);
void add_plan(CLI::App& app, Invocation& run);
void add_predict(CLI::App& app, Invocation& run);
void add_chat(CLI::App& app, Invocation& run);
void add_verify(CLI::App& app, Invocation& run);
void add_validate(CLI::App& app, Invocation& run);
void add_bench(CLI::App& app, Invocation& run);
void add_env(CLI::App& app, Invocation& run);
void add_sbatch(CLI::App& app, Invocation& run);
void add_report(CLI::App& app, Invocation& run);
void add_runs(CLI::App& app, Invocation& run);
void add_tokenizer(CLI::App& app, Invocation& run);
void add_score(CLI::App& app, Invocation& run);
void add_data(CLI::App& app, Invocation& run);
void add_evaluate(CLI::App& app, Invocation& run);
void add_merge(CLI::App& app, Invocation& run);
void add_env_replay(CLI::App& app, Invocation& run);
void add_new(CLI::App& app, Invocation& run);
void add_ls(CLI::App& app, Invocation& run);
void add_cp(CLI::App& app, Invocation& run);
void add_schema(CLI::App& app, Invocation& run);
void add_completion(CLI::App& app, Invocation& run);
void add_man(CLI::App& app, Invocation& run);

// [-c FILE ...] JOB.yaml ... key=value ...: a word with '=' is an override, unless it is the name of a file.
struct JobArguments {
  std::vector<std::string> configs, words;
  bool empty() const { return configs.empty() && words.empty(); }
  std::vector<std::string> files() const;
  std::vector<std::string> overrides() const;
  JobConfig load() const;
  JobConfig load(JobUse use) const;  // and checked for that use
};
bool is_override(const std::string& word);
// Declares the words of a command that takes a job; where they are required, load() says so.
void add_job_words(CLI::App& command, JobArguments& words, bool required = true);

// What may stand at the last of `words` (a command line without the program's name): for shells, see
// completion.cpp. One candidate a line, with a tab and its meaning; ":files" lets the shell add paths.
std::string complete_words(const CLI::App& app, const std::vector<std::string>& words);

// A subcommand with examples under its --help, and --version.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& help,
                      const std::string& examples);

// "redco 0.2.0 (GCC 12.2.0, optimized)", and the libraries, one a line.
std::string version_text();
// The source's git revision ("1f3a5c7d9e0b", "-dirty" where files were changed; "" outside of git), and the
// libraries with their versions.
std::string build_revision();
std::string build_libraries();

}  // namespace redco::cli
