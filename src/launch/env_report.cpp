#include "launch/env_report.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"

namespace redco {

std::string build_description() {
  std::string s = fmt::format("GCC {}.{}.{}", __GNUC__, __GNUC_MINOR__, __GNUC_PATCHLEVEL__);
#if defined(__clang__)
  s = fmt::format("Clang {}.{}.{}", __clang_major__, __clang_minor__, __clang_patchlevel__);
#endif
#if defined(__OPTIMIZE__)
  s += ", optimized";
#else
  s += ", not optimized";
#endif
#if defined(__SANITIZE_ADDRESS__)
  s += ", address sanitizer";
#endif
#if defined(__SANITIZE_THREAD__)
  s += ", thread sanitizer";
#endif
  return s;
}

namespace {

std::string cores_text(const Machine& m) {
  std::string s = fmt::format("{} usable: {} physical cores in an affinity mask of {} of {} CPUs",
                              m.usable_cores, m.physical_cores, m.allowed_cpus, m.online_cpus);
  if (m.quota) s += fmt::format(", cgroup quota {:.3g} CPUs", *m.quota);
  return s;
}

}  // namespace

EnvReport collect_env(const std::string& version, const std::string& blas, const std::string& mpi,
                      const std::string& problem) {
  EnvReport r{version, build_description(), this_machine(), blas, mpi, "", problem};
  if (const auto job = detect_slurm(current_environment()))
    r.slurm = fmt::format("job {}, {}, {}", job->id, counted(job->nodes.size(), "node"),
                          counted(total_slots(job->nodes), "task"));
  return r;
}

std::string env_text(const EnvReport& r) {
  std::string s;
  const auto line = [&](const char* name, const std::string& value) {
    s += fmt::format("{:<10} {}\n", name, value);
  };
  const Machine& m = r.machine;
  line("redco",
       fmt::format("{} ({}{})", r.version, r.build, r.revision.empty() ? "" : ", revision " + r.revision));
  line("host", m.hostname);
  line("cpu", fmt::format("{}, {}", m.cpu.empty() ? "unknown" : m.cpu, m.isa));
  line("cores", cores_text(m));
  line("memory", fmt::format("{} available of {}", human_bytes(static_cast<u64>(m.memory_available)),
                             human_bytes(static_cast<u64>(m.memory_total))));
  line("blas", r.blas);
  line("mpi", r.mpi);
  if (!r.libraries.empty()) line("libraries", r.libraries);
  line("cma", m.cma ? "allowed: ranks of a host can read each other's memory"
                    : "not allowed: ranks of a host cannot read each other's memory");
  if (r.sgemm_flops_per_s > 0)
    line("speed",
         fmt::format("{}FLOP/s peak matmul (sgemm), {}, {}B/s streaming read",
                     human_count(r.sgemm_flops_per_s),
                     r.bf16_flops_per_s > 0 ? human_count(r.bf16_flops_per_s) + "FLOP/s of bf16 products"
                                            : std::string("no bf16 products (bf16 is widened)"),
                     human_count(r.read_bytes_per_s)));
  for (const std::string& measured : r.measured) line("measured", measured);
  line("binding", m.can_bind ? "ranks can be pinned to cores"
                             : "ranks cannot be pinned to cores: the affinity is limited or cannot be set");
  line("slurm", r.slurm.empty() ? "no" : r.slurm);
  if (!r.problem.empty()) line("PROBLEM", r.problem);
  return s;
}

std::string env_json(const EnvReport& r) {
  const Machine& m = r.machine;
  nlohmann::ordered_json j{{"version", r.version},
                           {"build", r.build},
                           {"revision", r.revision},
                           {"libraries", r.libraries},
                           {"host", m.hostname},
                           {"cpu", m.cpu},
                           {"isa", m.isa},
                           {"cores", m.usable_cores},
                           {"physical_cores", m.physical_cores},
                           {"allowed_cpus", m.allowed_cpus},
                           {"online_cpus", m.online_cpus},
                           {"cpu_quota", nullptr},
                           {"memory_total", m.memory_total},
                           {"memory_available", m.memory_available},
                           {"can_bind", m.can_bind},
                           {"cma", m.cma},
                           {"blas", r.blas},
                           {"mpi", r.mpi},
                           {"slurm", r.slurm},
                           {"problem", r.problem}};
  if (m.quota) j["cpu_quota"] = *m.quota;
  if (r.sgemm_flops_per_s > 0) {
    j["sgemm_flops_per_s"] = r.sgemm_flops_per_s;
    j["bf16_flops_per_s"] = r.bf16_flops_per_s;
    j["read_bytes_per_s"] = r.read_bytes_per_s;
    j["measured"] = r.measured;
  }
  return j.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace redco
