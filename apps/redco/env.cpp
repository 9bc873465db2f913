#include <cstdio>

#include "base/error.h"
#include "base/log.h"
#include "base/process.h"
#include "comm/group.h"
#include "commands.h"
#include "commands/measure_machine.h"
#include "kernels/peak.h"
#include "kernels/threads.h"
#include "launch/capture.h"
#include "launch/child_process.h"
#include "launch/env_report.h"

namespace redco::cli {

namespace {

struct Options {
  bool json = false, measure = false, quick = false;
  std::string layout;
  std::vector<std::string> hosts;
};

// Measures the layouts, each in separate processes, and adds the stored figures to the report.
void measure(const Options& o, EnvReport& r) {
  kernels::set_threads(r.machine.usable_cores);
  kernels::check_blas();
  r.sgemm_flops_per_s = kernels::measure_gemm_ceiling(1024, 1024, 1024);
  r.bf16_flops_per_s = kernels::measure_bf16_ceiling();
  r.read_bytes_per_s = kernels::measure_read_ceiling(i64{256} << 20);
  for (const CoreLayout& layout : usual_layouts(r.machine.usable_cores)) {
    std::vector<std::string> argv = {program_path(), "env", "--measure", "--layout",
                                     fmt::format("{}x{}", layout.ranks, layout.threads)};
    if (o.quick) argv.emplace_back("--quick");
    for (const std::string& host : o.hosts) argv.insert(argv.end(), {"--hosts", host});
    output_of(argv, 3600);
  }
  for (const CoreLayout& layout : usual_layouts(r.machine.usable_cores))
    if (const auto speeds = load_speeds(speed_key(layout))) r.measured.push_back(speeds_text(*speeds));
}

}  // namespace

void add_env(CLI::App& app, Invocation& run) {
  auto o = std::make_shared<Options>();
  CLI::App* c = add_command(
      app, "env", "Show what redco finds on this machine: cores, memory, BLAS, MPI, SLURM",
      "  redco env --measure               measure kernels and collectives, for the times of `redco plan`\n"
      "  redco env --measure --layout 2x1  the same for two ranks of one thread each\n"
      "  redco env --json                  for bug reports\n");
  c->add_flag("--json", o->json, "print one JSON object on one line");
  c->add_flag("--measure", o->measure,
              "measure the speed of kernels, memory and collectives, and store it; takes about a minute");
  c->add_option(
       "--layout", o->layout,
       "with --measure: ranks of a host and threads of a rank (RANKSxTHREADS); default: one rank on all "
       "cores, a rank on each core, and one core")
      ->check(CLI::Validator([](std::string& text) { return parse_layout(text), std::string(); },
                             "RANKSxTHREADS"));
  c->add_option("--hosts", o->hosts, "with --measure: also the network between these hosts, comma-separated")
      ->delimiter(',');
  c->add_flag("--quick", o->quick, "with --measure: rough figures in about a second, for tests");
  c->callback([o, &run] {
    if (!o->measure && (!o->layout.empty() || !o->hosts.empty() || o->quick))
      throw UsageError("[env] --layout, --hosts and --quick are options of --measure; add --measure");
    if (o->measure && !o->layout.empty()) {
      run.exit_code = measure_machine({parse_layout(o->layout), o->hosts, o->quick}, run.argv);
      return;
    }
    EnvReport r = collect_env(REDCO_VERSION, kernels::describe(), mpi_version(), mpi_mismatch());
    r.revision = build_revision();
    r.libraries = build_libraries();
    if (o->measure) measure(*o, r);
    std::fputs((o->json ? env_json(r) + "\n" : env_text(r)).c_str(), stdout);
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
