// redco: parse, call src, print. One file a command.
#include <cstdio>
#include <exception>

#include "base/error.h"
#include "commands.h"
#include "job/session.h"
#include "launch/exec.h"

int main(int argc, char** argv) {
  using namespace redco;
  CLI::App app("redco: distributed training and inference of large models from one job YAML");
  app.set_version_flag("--version", std::string("redco ") + REDCO_VERSION);
  app.require_subcommand(1);
  app.option_defaults()->always_capture_default(false);
  cli::Invocation run;
  try {
    run.argv.push_back(program_path());
    for (int i = 1; i < argc; ++i) run.argv.emplace_back(argv[i]);
    cli::add_train(app, run);
    cli::add_verify(app, run);
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help, --version
    app.exit(e);
    return static_cast<int>(ExitCode::usage);
  } catch (const std::exception& e) {
    return report_error(e);
  }
  return run.exit_code;
}
