#include "report/report.h"

#include <cstdio>

#include "base/file.h"
#include "base/log.h"
#include "base/timing.h"
#include "commands.h"
#include "workdir/workdir_lock.h"
#include "workdir/workdir_names.h"

namespace redco::cli {

namespace {

struct ReportOptions {
  std::vector<std::string> workdirs;
  std::string output;
};

int write_report(const ReportOptions& o) {
  std::vector<ReportRequest> requests;
  for (const std::string& w : o.workdirs)
    requests.push_back({.workdir = w, .running = workdir_holder(w), .now = wall_seconds()});
  std::vector<std::string> skipped;
  const bool one = requests.size() == 1;
  const std::string page = one ? make_report(requests[0]) : make_comparison(requests, skipped);
  for (const std::string& s : skipped) info("[report] {} is skipped: it is not the workdir of a training", s);
  if (o.output == "-") {
    std::fwrite(page.data(), 1, page.size(), stdout);
    return 0;
  }
  const std::string path = !o.output.empty() ? o.output
                           : one             ? join_path(o.workdirs[0], workdir::kReport)
                                             : "comparison.html";
  write_file_durable(path, page);
  info("[report] written to {}", path);
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Invocation& run) {
  auto o = std::make_shared<ReportOptions>();
  CLI::App* c = add_command(
      app, "report", "Write one HTML page about a training, or a page that compares several",
      "  redco report runs/a                 curves, confusion matrix, samples, plan: writes "
      "runs/a/report.html\n"
      "  redco report runs/a -o a.html       also while it is still running\n"
      "  redco report runs/*                 settings that differ, best metrics, curves over each other:\n"
      "                                      writes comparison.html\n");
  c->add_option("WORKDIR", o->workdirs, "workdirs of trainings; with several, other folders are skipped")
      ->required();
  expand_paths(c->add_option(
      "-o,--output", o->output,
      "file to write, - for standard output; default: WORKDIR/report.html, or comparison.html for several "
      "workdirs"));
  c->callback([o, &run] { run.exit_code = write_report(*o); });
}

}  // namespace redco::cli
