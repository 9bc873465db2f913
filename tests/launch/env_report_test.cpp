#include "launch/env_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace redco {
namespace {

using testing::HasSubstr;

EnvReport report() {
  EnvReport r;
  r.version = "0.1.0";
  r.build = "GCC 12.2.0, optimized";
  r.machine = {"node1", "AMD EPYC", "avx512", 16, 8, 4, 2.5, 2, i64{8} << 30, i64{3} << 30, true, false};
  r.blas = "OpenBLAS 0.3.21";
  r.mpi = "Open MPI v4.1.4";
  return r;
}

TEST(EnvReport, Text) {
  EXPECT_EQ(
      env_text(report()),
      "redco      0.1.0 (GCC 12.2.0, optimized)\n"
      "host       node1\n"
      "cpu        AMD EPYC, avx512\n"
      "cores      2 usable: 4 physical cores in an affinity mask of 8 of 16 CPUs, cgroup quota 2.5 CPUs\n"
      "memory     3.00 GiB available of 8.00 GiB\n"
      "blas       OpenBLAS 0.3.21\n"
      "mpi        Open MPI v4.1.4\n"
      "cma        not allowed: ranks of a host cannot read each other's memory\n"
      "binding    ranks can be pinned to cores\n"
      "slurm      no\n");
  auto r = report();
  r.problem = "srun without pmix";
  EXPECT_THAT(env_text(r), testing::EndsWith("PROBLEM    srun without pmix\n"));
}

TEST(EnvReport, Json) {
  const auto j = nlohmann::json::parse(env_json(report()));
  EXPECT_EQ(j["cpu_quota"], 2.5);
  EXPECT_EQ(j["memory_available"], i64{3} << 30);
  auto r = report();
  r.machine.hostname = "bad\xff";  // must not throw
  EXPECT_THAT(env_json(r), HasSubstr("bad"));
}

TEST(EnvReport, ThisMachine) {
  const auto r = collect_env("0.1.0", "blas", "mpi");
  EXPECT_THAT(r.build, HasSubstr("."));
  EXPECT_THAT(env_text(r), HasSubstr(r.machine.hostname));
}

}  // namespace
}  // namespace redco
