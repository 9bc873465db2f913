#include <cstdio>

#include "comm/group.h"
#include "commands.h"
#include "kernels/peak.h"
#include "kernels/threads.h"
#include "launch/env_report.h"

namespace redco::cli {

void add_env(CLI::App& app, Invocation& run) {
  auto json = std::make_shared<bool>(false), measure = std::make_shared<bool>(false);
  CLI::App* c =
      add_command(app, "env", "Show what redco finds on this machine: cores, memory, BLAS, MPI, SLURM",
                  "  redco env --measure    with the speed of matrix products and memory\n"
                  "  redco env --json       for bug reports\n");
  c->add_flag("--json", *json, "print one JSON object on one line");
  c->add_flag("--measure", *measure, "measure the speed of matrix products and memory; takes a few seconds");
  c->callback([json, measure, &run] {
    EnvReport r = collect_env(REDCO_VERSION, kernels::describe(), mpi_version(), mpi_mismatch());
    r.revision = build_revision();
    r.libraries = build_libraries();
    if (*measure) {
      kernels::set_threads(r.machine.usable_cores);
      kernels::check_blas();
      r.sgemm_flops_per_s = kernels::measure_gemm_ceiling(1024, 1024, 1024);
      r.bf16_flops_per_s = kernels::measure_bf16_ceiling();
      r.read_bytes_per_s = kernels::measure_read_ceiling(i64{256} << 20);
    }
    std::fputs((*json ? env_json(r) + "\n" : env_text(r)).c_str(), stdout);
    run.exit_code = 0;
  });
}

}  // namespace redco::cli
