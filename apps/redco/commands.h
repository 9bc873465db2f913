// One function a command: declares its options; the callback parses, calls src, prints.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace redco::cli {

// The program's own arguments, for starting ranks.
struct Invocation {
  std::vector<std::string> argv;
  int exit_code = 0;
};

void add_train(CLI::App& app, Invocation& run);
void add_verify(CLI::App& app, Invocation& run);

// JOB.yaml ... key=value ...: files are what doesn't look like an override.
struct JobArguments {
  std::vector<std::string> words;
  std::vector<std::string> files() const;
  std::vector<std::string> overrides() const;
};

}  // namespace redco::cli
