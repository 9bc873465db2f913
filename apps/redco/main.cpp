// redco: parse, call src, print. One file a command.
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/words.h"
#include "commands.h"
#include "launch/child_process.h"
#include "launch/topology.h"
#include "launch/watchdog.h"
#include "run/run.h"

namespace redco::cli {
namespace {

constexpr const char* kExamples =
    "A job is a YAML file; key=value words on the command line override its keys:\n"
    "  redco plan job.yaml                                what it needs, before it runs\n"
    "  redco train job.yaml train.max_steps=100           train, or go on from the last checkpoint\n"
    "  redco predict job.yaml predict.prompt='Once upon'  ask the trained model\n"
    "  redco ls, redco cp lm/gpt2                         jobs to start from\n"
    "  redco COMMAND --help                               options and examples of a command\n"
    "  redco validate --explain train                     the keys of a job's section\n"
    "Exit codes: 0 done, 1 a check failed, 2 command line or job, 3 contents of files, 4 doesn't fit,\n"
    "5 a rank died, 6 not finite, 7 reading or writing, 8 stopped by a signal, 70 a bug.";

// "; did you mean --json?": the command's option nearest to a word that it doesn't have.
std::string option_hint(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::vector<std::string> names;
  for (const CLI::Option* o : command->get_options())
    for (const std::string& n : o->get_lnames()) names.push_back("--" + n);
  for (const std::string& w : words) {
    if (!w.starts_with("-")) continue;
    const std::string near = nearest(w.substr(0, w.find('=')), names);
    if (!near.empty()) return fmt::format("; did you mean {}?", near);
  }
  return "";
}

int usage_error(const CLI::App& app, const CLI::ParseError& e, const std::vector<std::string>& words) {
  std::string command = "redco";
  for (const CLI::App* a = &app; !a->get_subcommands().empty();) {
    a = a->get_subcommands().front();
    command += " " + a->get_name();
  }
  std::string what = e.what();
  if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError)) what += option_hint(app, words);
  error("{}\n`{} --help` says more", what, command);
  return static_cast<int>(ExitCode::usage);
}

// A word that is no command where one is expected: said before CLI11 takes it for a stray argument. "" where
// all is well.
std::string unknown_command(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string path = app.get_name();
  for (const std::string& w : words) {
    const auto known = command->get_subcommands([](const CLI::App*) { return true; });
    if (known.empty()) return "";
    if (w.starts_with("-")) {
      if (command->get_option_no_throw(w) != nullptr) return "";
      return fmt::format("{} has no option '{}'{}", path, excerpt(w), option_hint(*command, {w}));
    }
    const auto it =
        std::find_if(known.begin(), known.end(), [&](const CLI::App* c) { return c->get_name() == w; });
    if (it == known.end()) {
      std::vector<std::string> names;
      for (const CLI::App* c : known) names.push_back(c->get_name());
      const std::string near = nearest(w, names);
      return fmt::format(
          "{} has no command '{}'; {}", path, excerpt(w),
          near.empty() ? fmt::format("it has {}", fmt::join(names, ", ")) : "did you mean " + near + "?");
    }
    command = *it;
    path += " " + w;
  }
  return "";
}

// Commands that answer a signal with code 8 and a message. The others do nothing that a signal may not cut.
bool runs_a_job(const std::string& command) {
  static const std::vector<std::string> kCommands = {"train",  "predict", "evaluate", "chat",
                                                     "verify", "bench",   "merge"};
  return std::find(kCommands.begin(), kCommands.end(), command) != kCommands.end();
}

int run_command(int argc, char** argv) {
  CLI::App app("redco: training and inference of large models, sharded over ranks, from one job YAML",
               "redco");
  app.set_version_flag("--version", version_text, "version, build and libraries");
  app.require_subcommand(1);
  app.footer(kExamples);
  Invocation run;
  std::vector<std::string> words(argv + 1, argv + argc);
  try {
    if (!words.empty() && runs_a_job(words[0])) catch_signals();
    run.argv.push_back(program_path());
    run.argv.insert(run.argv.end(), words.begin(), words.end());
    add_train(app, run);
    add_plan(app, run);
    add_predict(app, run);
    add_chat(app, run);
    add_verify(app, run);
    add_validate(app, run);
    add_bench(app, run);
    add_env(app, run);
    add_sbatch(app, run);
    add_report(app, run);
    add_runs(app, run);
    add_tokenizer(app, run);
    add_score(app, run);
    add_data(app, run);
    add_evaluate(app, run);
    add_merge(app, run);
    add_env_replay(app, run);
    add_new(app, run);
    add_ls(app, run);
    add_cp(app, run);
    add_schema(app, run);
    add_completion(app, run);
    add_man(app, run);
    if (!words.empty() && words[0] == "__complete") {
      std::fputs(complete_words(app, {words.begin() + 1, words.end()}).c_str(), stdout);
      return 0;
    }
    if (const std::string unknown = unknown_command(app, words); !unknown.empty())
      throw UsageError("{}", unknown);
    if (words.empty()) {
      std::fputs(app.help().c_str(), stderr);
      return static_cast<int>(ExitCode::usage);
    }
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return e.get_exit_code() == 0 ? app.exit(e) : usage_error(app, e, words);  // 0: --help, --version
  } catch (const std::exception& e) {
    return report_error(e);
  }
  return run.exit_code;
}

int run_main(int argc, char** argv) {
  hide_hwloc_warnings();
  try {
    watchdog::start();
  } catch (const std::exception& e) {
    return report_error(e);
  }
  const int code = run_command(argc, argv);
  watchdog::finish(code);
  return code;
}

}  // namespace
}  // namespace redco::cli

int main(int argc, char** argv) { return redco::cli::run_main(argc, argv); }
