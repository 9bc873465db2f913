#include "launch/choose_launcher.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "launch/login.h"
#include "launch/rank_environment.h"
#include "launch/threads_per_rank.h"
#include "shard/mesh_of.h"

namespace redco {

const HostFacts* facts_for(const LaunchRequest& r, const std::string& name) {
  if (const auto it = r.facts.find(name); it != r.facts.end()) return &it->second;
  if (name == "localhost" || same_host(name, r.here.name)) return &r.here;
  return nullptr;
}

namespace {

bool has(const Environment& e, const char* name) {
  const auto it = e.find(name);
  return it != e.end() && !it->second.empty();
}

// The hosts that may be used, each with its slots; empty: this machine, without an upper bound.
std::vector<Host> usable_hosts(const LaunchRequest& r, const std::optional<SlurmJob>& slurm) {
  std::vector<Host> hosts = hosts_of_job(r.hosts, r.hostfile);
  return hosts.empty() && slurm ? slurm->nodes : hosts;
}

// Where the slots of usable_hosts() come from.
SlotsNames names_of_slots(const LaunchRequest& r) {
  if (r.hosts.empty() && !r.hostfile)
    return {"the SLURM allocation", "task",
            fmt::format("request more tasks (--ntasks {})", r.n_ranks.value_or(1))};
  if (r.hosts_source.empty()) return {};
  return {r.hosts_source, "slot", "request more slots from the batch system"};
}

// Open MPI 4 cuts host names at the first dot, also where they differ only after it.
void keep_domains(Mpirun& m) {
  const auto& hosts = m.options.hosts;
  if (std::any_of(hosts.begin(), hosts.end(),
                  [](const Host& h) { return brief_name(h.name).size() != h.name.size(); }))
    m.options.mca["orte_keep_fqdn_hostnames"] = m.own_environment["PRTE_MCA_prte_keep_fqdn_hostnames"] = "1";
}

// Open MPI 5 has the launch agent under another name.
void set_agent(const LaunchRequest& r, Mpirun& m) {
  constexpr const char* kOfVersion5 = "PRTE_MCA_plm_ssh_agent";
  const auto agent = r.environment.find("OMPI_MCA_plm_rsh_agent");
  if (agent != r.environment.end() && !r.environment.contains(kOfVersion5))
    m.own_environment[kOfVersion5] = agent->second;
}

void set_ssh_arguments(const LaunchRequest& r, Mpirun& m) {
  if (const std::string arguments = ssh_arguments(r.environment); !arguments.empty())
    m.options.mca["plm_rsh_args"] = arguments;
  set_agent(r, m);
}

// Open MPI would also try networks that only some hosts have, or in which all have one address (docker0), and
// wait for them.
void set_networks(const LaunchRequest& r, Mpirun& m) {
  if (r.networks.empty() && r.left_out.empty()) return;
  const auto given = [&](const char* name) {
    return has(r.environment, (std::string("OMPI_MCA_") + name + "_if_include").c_str()) ||
           has(r.environment, (std::string("OMPI_MCA_") + name + "_if_exclude").c_str());
  };
  for (const std::string part : {"btl_tcp", "oob_tcp"}) {
    if (given(part.c_str())) continue;
    // mpirun itself, on a host without ranks, must reach the daemons.
    if (part == "oob_tcp" && !r.in_networks) continue;
    if (!r.networks.empty())
      m.options.mca[part + "_if_include"] = fmt::format("{}", fmt::join(r.networks, ","));
    else
      m.options.mca[part + "_if_exclude"] = fmt::format("127.0.0.0/8,{}", fmt::join(r.left_out, ","));
  }
}

// Options for other hosts. With them mpirun notices within about fault_timeout that a host has left the
// network (0: no limit); Open MPI's defaults take 480 s.
void reach_hosts(const LaunchRequest& r, bool by_ssh, Mpirun& m) {
  keep_domains(m);
  set_networks(r, m);
  if (by_ssh) set_ssh_arguments(r, m);
  if (r.fault_timeout <= 0) return;
  const int all = std::max(4, static_cast<int>(std::min(r.fault_timeout, 1e6)));
  const int interval = std::max(1, all / 6);
  m.options.mca["oob_tcp_keepalive_time"] = fmt::format("{}", all - 3 * interval);
  m.options.mca["oob_tcp_keepalive_intvl"] = fmt::format("{}", interval);
  m.options.mca["oob_tcp_keepalive_probes"] = "3";
}

// Sets mpirun's path, the environment of the ranks and mpirun's own environment.
void set_up(const LaunchRequest& r, const Environment& ranks, bool other_hosts, Mpirun& m) {
  m.path = r.mpirun;
  m.environment = ranks;
  m.passed = inherited_names(r.environment, other_hosts);
  if (r.root) m.own_environment = {{"OMPI_ALLOW_RUN_AS_ROOT", "1"}, {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"}};
  // A shell in a step of one task has the step's variables. With them mpirun would act as that task.
  const auto begins = [](const std::string& name, const char* prefix) { return name.rfind(prefix, 0) == 0; };
  for (const auto& [name, value] : r.environment)
    for (const char* prefix : {"PMIX_", "PMI_", "SLURM_STEP"})
      if (begins(name, prefix) && !begins(name, "PMIX_MCA_")) m.dropped.insert(name);
  // It counts the tasks of the step; without the step's list of nodes it would contradict the job's.
  if (has(r.environment, "SLURM_STEP_ID")) m.dropped.insert("SLURM_TASKS_PER_NODE");
}

// If the hosts' CPUs differ, all ranks use the lowest instruction set, so that the same kernels run
// everywhere. Variables set by the user stay.
void agree_on_kernels(const LaunchRequest& r, const std::vector<const HostFacts*>& facts, LaunchPlan& plan) {
  // Instruction sets and OpenBLAS's name for a CPU that has no more. x86-64 and arm64 have no set in common,
  // nor a program.
  struct Set {
    const char *isa, *core;
  };
  static constexpr std::array kOrder{Set{"baseline", "Nehalem"}, Set{"avx2", "Haswell"},
                                     Set{"avx512", "SkylakeX"}, Set{"neon", "ARMV8"}};
  std::set<std::string> isas, cpus;
  std::size_t least = kOrder.size() - 1;
  for (const HostFacts* f : facts) {
    if (!f || f->isa.empty()) return;  // unknown: the ranks compare theirs at the start
    isas.insert(f->isa);
    cpus.insert(f->cpu);
    const auto* const set = std::ranges::find(kOrder, f->isa, &Set::isa);
    least = std::min<std::size_t>(least, set - kOrder.begin());
  }
  if (cpus.size() < 2 && isas.size() < 2) return;
  const Set& common = kOrder[least];
  if (!has(r.environment, "REDCO_ISA")) plan.environment.emplace("REDCO_ISA", common.isa);
  if (!has(r.environment, "OPENBLAS_CORETYPE")) plan.environment.emplace("OPENBLAS_CORETYPE", common.core);
  const auto chosen = plan.environment.find("REDCO_ISA");
  plan.notes.push_back(fmt::format(
      "the hosts' CPUs differ ({}): all ranks use {} kernels, so that replicas hold the same bits",
      fmt::join(cpus, "; "),
      chosen == plan.environment.end() ? r.environment.at("REDCO_ISA") : chosen->second));
}

void check_connected(const LaunchRequest& r, const std::optional<SlurmJob>& slurm) {
  if (slurm && slurm->step_tasks > 1)
    throw UsageError(
        "srun started {} processes without connecting them by MPI; use `srun --mpi=pmix ...` (`srun "
        "--mpi=list` lists what this cluster supports), or run the command once in the allocation, without "
        "srun",
        slurm->step_tasks);
  if (has(r.environment, "SLURM_HET_SIZE") && r.environment.at("SLURM_HET_SIZE") != "1")
    throw UsageError(
        "[slurm] this is a heterogeneous job (SLURM_HET_SIZE={}), of which a process sees the nodes of one "
        "component. Submit a job with one component: `redco sbatch` writes the script",
        excerpt(r.environment.at("SLURM_HET_SIZE")));
  const auto pmi = r.environment.find("PMI_SIZE");
  if (pmi != r.environment.end() && pmi->second.size() < 9 && std::atoi(pmi->second.c_str()) > 1)
    throw UsageError(
        "the launcher of another MPI started {} processes, but redco is built with Open MPI; use Open MPI's "
        "mpirun, or run the command once and redco starts the ranks",
        pmi->second);
}

// The launch plan of a process that is not a rank.
LaunchPlan plan_ranks(const LaunchRequest& r, const std::optional<SlurmJob>& slurm, LaunchPlan plan) {
  const std::vector<Host> usable = usable_hosts(r, slurm);
  plan.n_ranks = r.n_ranks ? *r.n_ranks : !usable.empty() ? total_slots(usable) : r.n_model_shards;
  MeshNames names;
  if (!r.n_ranks)
    names.given_ranks = fmt::format("n_ranks={} ({})", plan.n_ranks,
                                    slurm && r.hosts.empty() && !r.hostfile ? "the tasks of the allocation"
                                    : r.hosts_source.empty()                ? "the slots of the hosts"
                                                             : "the slots in " + r.hosts_source);
  mesh_of(plan.n_ranks, r.n_model_shards, names);
  if (usable.empty()) {
    plan.hosts = {{"localhost", static_cast<int>(plan.n_ranks)}};
  } else {
    const auto ranks = ranks_on(usable, plan.n_ranks, names_of_slots(r));
    for (std::size_t h = 0; h < usable.size(); h++)
      if (ranks[h] > 0) plan.hosts.push_back({usable[h].name, ranks[h], usable[h].login});
  }
  if (!r.hosts_source.empty())
    plan.notes.push_back(fmt::format("{} on {} of {}", counted(plan.n_ranks, "rank"),
                                     counted(static_cast<i64>(plan.hosts.size()), "host"), r.hosts_source));
  const bool several = plan.hosts.size() > 1;
  std::vector<const HostFacts*> facts;
  for (const Host& h : plan.hosts) facts.push_back(facts_for(r, h.name));

  bool can_bind = true, cma = true;
  for (const HostFacts* f : facts) {
    can_bind = can_bind && (!f || f->can_bind);
    cma = cma && (!f || f->cma);
  }
  const ThreadShare share = threads_per_rank(r, slurm, plan.hosts);
  plan.threads_per_rank = share.threads;
  const int threads = plan.threads_per_rank.value_or(1);
  plan.notes.insert(plan.notes.end(), share.notes.begin(), share.notes.end());
  // Ranks are pinned only if the job takes more than half of a host: two small jobs would be pinned to the
  // same cores.
  plan.bound =
      plan.n_ranks > 1 && share.all_known && share.threads && share.fits && share.fills && can_bind && !slurm;
  if (!can_bind && plan.n_ranks > 1)
    plan.notes.push_back(
        "ranks are not pinned to cores: the affinity of this process is limited or cannot be set");

  if (plan.threads_per_rank) plan.environment["OMP_NUM_THREADS"] = fmt::format("{}", threads);
  // Waking a thread that sleeps takes longer than many loops. Threads that own their cores spin up to 300 us
  // before they sleep; threads that have a core each, but may share it with other jobs, up to 50 us; others
  // sleep immediately.
  const char* spins = plan.bound ? "10000" : share.all_known && share.fits ? "1000" : "0";
  for (const auto& [name, value] : Environment{{"OMP_WAIT_POLICY", "passive"}, {"GOMP_SPINCOUNT", spins}})
    if (!has(r.environment, name.c_str())) plan.environment.emplace(name, value);
  for (const auto& [name, what] : {std::pair("REDCO_ISA", "redco's kernels use this instruction set"),
                                   std::pair("OPENBLAS_CORETYPE", "BLAS uses the kernels of this CPU")})
    if (has(r.environment, name))
      plan.notes.push_back(
          fmt::format("{}={} is set in the environment: {}", name, r.environment.at(name), what));
  agree_on_kernels(r, facts, plan);
  if (plan.n_ranks == 1 &&
      (plan.hosts[0].name == "localhost" || (facts[0] == &r.here) || (slurm && r.hosts.empty()))) {
    plan.way = LaunchPlan::Way::alone;
    return plan;
  }

  plan.way = LaunchPlan::Way::mpirun;
  Mpirun& m = plan.mpirun;
  m.options.n_ranks = plan.n_ranks;
  m.options.hosts = plan.hosts;
  if (plan.bound) m.options.pinned_cores = threads;
  m.options.oversubscribe = !share.fits;
  if (!cma) m.options.mca["btl_vader_single_copy_mechanism"] = "none";
  const bool other_hosts = several || !facts[0] || facts[0] != &r.here;
  if (other_hosts) reach_hosts(r, !slurm, m);
  set_up(r, plan.environment, other_hosts, m);
  return plan;
}

}  // namespace

std::string ssh_arguments(const Environment& environment) {
  const auto of = [&](const char* name) {
    const auto it = environment.find(name);
    return it == environment.end() ? std::string() : it->second;
  };
  const std::string agent = of("OMPI_MCA_plm_rsh_agent"), own = of("OMPI_MCA_plm_rsh_args");
  const std::string program = agent.substr(0, agent.find(' '));
  const bool ours = !of(kLoginsVariable).empty();  // becomes ssh
  if (!agent.empty() && !ours && program.substr(program.rfind('/') + 1).find("ssh") == std::string::npos)
    return "";
  // ssh takes the first value of an option.
  return own + (own.empty() ? "" : " ") + "-o BatchMode=yes -o ConnectTimeout=10";
}

HostFacts facts_of(const Machine& m) { return {m.hostname, m.usable_cores, m.isa, m.cpu, m.can_bind, m.cma}; }

LaunchPlan plan_launch(const LaunchRequest& r) {
  LaunchPlan plan;
  plan.environment = r.for_ranks;
  if (r.rank) {
    plan.way = LaunchPlan::Way::rank;
    const auto size = r.environment.find("OMPI_COMM_WORLD_SIZE");
    plan.n_ranks = size == r.environment.end() ? 0 : std::max(0, std::atoi(size->second.c_str()));
    if (r.threads_per_rank) plan.threads_per_rank = static_cast<int>(*r.threads_per_rank);
    return plan;
  }
  const auto without_slurm = [](LaunchPlan p) {
    for (const char* kind : {"ess", "plm", "ras"}) p.mpirun.options.mca[kind] = "^slurm";
    return p;
  };
  if (r.joined) return without_slurm(plan_ranks(r, std::nullopt, std::move(plan)));
  const auto slurm = detect_slurm(r.environment);
  check_connected(r, slurm);
  if (!slurm || !slurm->is_shell()) return plan_ranks(r, slurm, std::move(plan));
  // Such a shell counts as a machine with the step's CPUs.
  LaunchRequest shell = r;
  if (const int cpus = slurm->cpus_per_task ? slurm->cpus_per_task : slurm->cpus.empty() ? 0 : slurm->cpus[0])
    shell.here.cores = shell.here.cores ? std::min(shell.here.cores, cpus) : cpus;
  return without_slurm(plan_ranks(shell, std::nullopt, std::move(plan)));
}

}  // namespace redco
