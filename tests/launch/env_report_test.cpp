#include "launch/env_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "support/error_text.h"

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

TEST(EnvReport, JsonRoundTrip) {
  const auto j = nlohmann::json::parse(env_json(report()));
  EXPECT_EQ(j["cpu_quota"], 2.5);
  EXPECT_EQ(j["memory_available"], i64{3} << 30);
  auto r = report();
  r.machine.hostname = "bad\xff";  // must not throw
  EXPECT_THAT(env_json(r), HasSubstr("bad"));
  const auto facts = parse_env_lines("warning\n" + env_json(report()) + "\n\n" + env_json(report()) + "\n");
  ASSERT_EQ(facts.size(), 2u);
  EXPECT_EQ(facts[0].name, "node1");
  EXPECT_EQ(facts[0].cores, 2);
  EXPECT_EQ(facts[0].isa, "avx512");
  EXPECT_FALSE(facts[0].cma);
}

TEST(EnvReport, MalformedObjectsAreContentsErrors) {
  for (
      const char* bad :
      {"{", "{}", "{\"host\": 1}",
       "{\"host\":\"a\",\"rank\":0,\"cores\":-1,\"isa\":\"\",\"cpu\":\"\",\"can_bind\":"
       "true,\"cma\":true}",
       "{\"host\":\"a\",\"rank\":0,\"cores\":9999999999,\"isa\":\"\",\"cpu\":\"\",\"can_bind\":true,\"cma\":true}"})
    EXPECT_THAT(error_text<ContentsError>([&] { parse_env_lines(bad); }), HasSubstr("redco env --json"))
        << bad;
}

TEST(EnvReport, ThisMachine) {
  const auto r = collect_env("0.1.0", "blas", "mpi");
  EXPECT_THAT(r.build, HasSubstr("."));
  EXPECT_THAT(env_text(r), HasSubstr(r.machine.hostname));
  EXPECT_EQ(parse_env_lines(env_json(r)).size(), 1u);
}

TEST(ProbeHosts, AsksThisMachineThroughMpirun) {
  // A program that prints what `redco env --json` does; its host name differs from the host list's.
  const std::string path = std::filesystem::temp_directory_path() / fmt::format("redco-probe-{}", getpid());
  std::ofstream(path) << "#!/bin/bash\n[ \"$1 $2\" = 'env --json' ] && echo '" << env_json(report()) << "'\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  LaunchRequest r;
  r.root = geteuid() == 0;
  r.hosts = {"localhost:4"};
  const auto facts = probe_hosts(r, path);
  ASSERT_EQ(facts.count("localhost"), 1u);
  EXPECT_EQ(facts.at("localhost").cores, 2);
  std::ofstream(path) << "#!/bin/bash\necho silent\n";
  EXPECT_THAT(error_text<Error>([&] { probe_hosts(r, path); }), HasSubstr("0 of 1 hosts answered"));
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace redco
