#include "report/report.h"

#include <cstdio>

#include "base/file.h"
#include "base/log.h"
#include "base/timing.h"
#include "commands.h"
#include "run/workdir_lock.h"

namespace redco::cli {

void add_report(CLI::App& app, Invocation& run) {
  struct Options {
    std::string workdir, output;
  };
  auto o = std::make_shared<Options>();
  CLI::App* c =
      add_command(app, "report", "One HTML page about a training: curves, plan, samples, checkpoints",
                  "  redco report runs/a                 writes runs/a/report.html\n"
                  "  redco report runs/a -o a.html       also while it is still running\n");
  c->add_option("WORKDIR", o->workdir, "the job's workdir")->required();
  c->add_option("-o,--output", o->output,
                "the file to write, - for standard output; default: WORKDIR/report.html");
  c->callback([o, &run] {
    const std::string page =
        make_report({.workdir = o->workdir, .running = workdir_holder(o->workdir), .now = wall_seconds()});
    if (o->output == "-") {
      std::fwrite(page.data(), 1, page.size(), stdout);
    } else {
      const std::string path = o->output.empty() ? join_path(o->workdir, "report.html") : o->output;
      write_file_durable(path, page);
      info("[report] written to {}", path);
    }
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
