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
void add_verify(CLI::App& app, Invocation& run);
void add_validate(CLI::App& app, Invocation& run);
void add_bench(CLI::App& app, Invocation& run);
void add_env(CLI::App& app, Invocation& run);
void add_sbatch(CLI::App& app, Invocation& run);
void add_tokenizer(CLI::App& app, Invocation& run);

// JOB.yaml ... key=value ...: a word with '=' is an override, unless it is the name of a file.
struct JobArguments {
  std::vector<std::string> words;
  std::vector<std::string> files() const;
  std::vector<std::string> overrides() const;
  JobConfig load() const;
};
bool is_override(const std::string& word);
// Declares the words of a command that takes a job.
void add_job_words(CLI::App& command, JobArguments& words);

// A subcommand with examples under its --help, and --version.
CLI::App* add_command(CLI::App& app, const std::string& name, const std::string& help,
                      const std::string& examples);

// "redco 0.1.0 (GCC 12.2.0, optimized)", and the libraries, one a line.
std::string version_text();

}  // namespace redco::cli
