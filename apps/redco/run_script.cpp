// run: a Python script that starts jobs.
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "commands.h"
#include "pipeline/load_python.h"

namespace redco::cli {

namespace {

// Replaces this process.
[[noreturn]] void run_script(std::vector<std::string> words) {
  if (words.empty() || !exists(words[0]))
    throw UsageError("redco run: {}. Give a Python script: redco run SCRIPT.py",
                     words.empty() ? "the script is missing" : words[0] + " does not exist");
  if (words[0].ends_with(".yaml") || words[0].ends_with(".yml"))
    throw UsageError("redco run: {} is a job. Train it with `redco train {}`, or give a Python script",
                     words[0], words[0]);
  const PythonProgram python = python_program();
  const char* before = std::getenv("PYTHONPATH");
  const std::string paths = before && *before ? python.packages + ":" + before : python.packages;
  ::setenv("PYTHONPATH", paths.c_str(), 1);
  words.insert(words.begin(), python.program);
  std::vector<char*> arguments;
  for (std::string& w : words) arguments.push_back(w.data());
  arguments.push_back(nullptr);
  ::execv(python.program.c_str(), arguments.data());
  throw UsageError("redco run: {} does not start: {}", python.program, std::strerror(errno));
}

}  // namespace

void add_run(CLI::App& app, Invocation&) {
  CLI::App* c = add_command(app, "run", "Run a Python script that starts jobs by redco.train(job)",
                            "  redco run sweep.py\n"
                            "  redco run sweep.py --its-own arguments\n");
  c->prefix_command();
  c->callback([c] { run_script(c->remaining()); });
}

}  // namespace redco::cli
