// redco: parses the command line, calls src, prints. One file per command.
#include <fmt/ranges.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>

#include "base/crash.h"
#include "base/error.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/terminal.h"
#include "base/words.h"
#include "check/step.h"
#include "commands.h"
#include "kernels/threads.h"
#include "launch/child_process.h"
#include "launch/join/server.h"
#include "launch/keepers.h"
#include "launch/login.h"
#include "launch/topology.h"
#include "launch/watch/watchdog.h"
#include "run/run.h"

namespace redco::cli {
namespace {

constexpr const char* kExamples =
    "A job is a YAML file. key=value words on the command line override its keys:\n"
    "  redco plan job.yaml                                memory and communication of the job\n"
    "  redco train job.yaml train.max_steps=100           train, or resume from the last checkpoint\n"
    "  redco predict job.yaml --prompt 'Once upon'        generate text with the trained model\n"
    "  redco ls; redco cp lm/gpt2                         list example jobs; copy one\n"
    "  redco COMMAND --help                               options and examples of a command\n"
    "  redco validate --explain train                     all keys of a job's section\n"
    "Exit codes: 0 success, 1 a check failed, 2 error in command line or job, 3 error in a file's contents,\n"
    "4 not enough memory, 5 a rank failed, 6 loss not finite, 7 reading or writing failed, 8 stopped by a\n"
    "signal, 70 a bug in redco.";

// "; did you mean --json?": the command's option nearest to an unknown argument, or the setting of
// that name.
std::string option_hint(const CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  std::vector<std::string> names;
  for (const CLI::Option* o : command->get_options())
    for (const std::string& n : o->get_lnames()) names.push_back("--" + n);
  const bool takes_job = command->get_option_no_throw("JOB") != nullptr;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string name = words[i].substr(0, words[i].find('='));
    if (!name.starts_with("-") || std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string near = nearest(name, names);
    if (!near.empty()) return fmt::format("; did you mean {}?", near);
    const std::string next = i + 1 < words.size() && !words[i + 1].starts_with("-") ? words[i + 1] : "";
    if (takes_job) return setting_hint(words[i], next);
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
  error("{}\n`{} --help` lists options and examples", what, command);
  return static_cast<int>(ExitCode::usage);
}

// The message about a word that is not a command; "" if all words are good. CLI11 would call such a word an
// argument that was not expected.
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
    if (it == known.end() && command->get_option_no_throw("JOB") != nullptr) return "";  // its other words
    if (it == known.end()) {
      std::vector<std::string> names;
      for (const CLI::App* c : known) names.push_back(c->get_name());
      if (w == "help") return fmt::format("{} has no command 'help'; use `{} --help`", path, path);
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

// Commands that end with code 8 and a message when a signal stops them. A signal ends the others immediately.
bool runs_a_job(const std::string& command) {
  static const std::vector<std::string> kCommands = {"train", "predict", "embed", "evaluate",
                                                     "chat",  "verify",  "check", "bench",
                                                     "merge", "data",    "hosts", kCheckCommand};
  return std::find(kCommands.begin(), kCommands.end(), command) != kCommands.end();
}

int run_command(int argc, char** argv) {
  report_crashes();
  CLI::App app("redco: distributed training and inference of transformers on CPUs, from one job file",
               "redco");
  app.set_version_flag("--version", version_text, "version, build and libraries");
  app.require_subcommand(1);
  app.footer(kExamples);
  Invocation run;
  std::vector<std::string> words(argv + 1, argv + argc);
  try {
    run.argv.push_back(program_path());
    run.argv.insert(run.argv.end(), words.begin(), words.end());
    add_train(app, run);
    add_plan(app, run);
    add_predict(app, run);
    add_embed(app, run);
    add_chat(app, run);
    add_verify(app, run);
    add_validate(app, run);
    add_check(app, run);
    add_bench(app, run);
    add_env(app, run);
    add_hosts(app, run);
    add_sbatch(app, run);
    add_report(app, run);
    add_runs(app, run);
    add_watch(app, run);
    add_tokenizer(app, run);
    add_score(app, run);
    add_data(app, run);
    add_evaluate(app, run);
    add_merge(app, run);
    add_convert(app, run);
    add_trust(app, run);
    add_env_replay(app, run);
    add_new(app, run);
    add_run(app, run);
    add_ls(app, run);
    add_cp(app, run);
    add_schema(app, run);
    add_completion(app, run);
    add_man(app, run);
    if (!words.empty() && words[0] == "__complete") {
      std::fputs(complete_words(app, {words.begin() + 1, words.end()}).c_str(), stdout);
      return 0;
    }
    if (words.size() >= 3 && words[0] == "agent")
      return run_agent(words[1], fmt::format("{}", fmt::join(words.begin() + 2, words.end(), " ")));
    if (words.size() == 3 && words[0] == kKeepCommand)
      return run_keeper(words[1], std::atof(words[2].c_str()));
    if (words.size() >= 3 && words[0] == "login") run_login({words.begin() + 1, words.end()});
    if (words.size() == 3 && words[0] == kCheckCommand) {
      const auto job = []() -> JobConfig {
        throw UsageError("{} runs a combination of redco check, which starts it", kCheckCommand);
      };
      return run_check_step({.job = job, .program = run.argv}, words[1], words[2]);
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

// Text that a command has left in the buffer of stdout.
int finish_stdout(int code) {
  try {
    flush_stdout();
  } catch (const std::exception& e) {
    const int failed = report_error(e);
    return code == 0 ? failed : code;
  }
  return code;
}

int run_main(int argc, char** argv) {
  open_standard_streams();
  const bool job = argc > 1 && runs_a_job(argv[1]);
  if (job) {
    hold_signals();
    std::signal(SIGPIPE, SIG_IGN);  // a reader of messages that goes away does not end a job
  }
  kernels::use_better_blas_core(argv);
  hide_hwloc_warnings();
  try {
    if (job) catch_signals();  // the watchdog may make a request as soon as it starts
    watchdog::start();
  } catch (const std::exception& e) {
    return report_error(e);
  }
  const int code = finish_stdout(run_command(argc, argv));
  watchdog::finish(code);
  return code;
}

}  // namespace
}  // namespace redco::cli

int main(int argc, char** argv) { return redco::cli::run_main(argc, argv); }
