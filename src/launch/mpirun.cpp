#include "launch/mpirun.h"

#include <algorithm>
#include <set>

#include "base/error.h"

namespace redco {

namespace {

bool has(const Environment& e, const char* name) {
  const auto it = e.find(name);
  return it != e.end() && !it->second.empty();
}

void mca(std::vector<std::string>& argv, const std::string& name, const std::string& value) {
  argv.insert(argv.end(), {"--mca", name, value});
}

const HostFacts* facts_for(const LaunchRequest& r, const std::string& name) {
  if (const auto it = r.facts.find(name); it != r.facts.end()) return &it->second;
  if (name == "localhost" || name == r.here.name || name == r.here.name.substr(0, r.here.name.find('.')))
    return &r.here;
  return nullptr;
}

// The hosts that may be used, each with its slots; empty: this machine, without an upper bound.
std::vector<Host> usable_hosts(const LaunchRequest& r, const std::optional<SlurmJob>& slurm) {
  if (!r.hosts.empty() && r.hostfile)
    throw UsageError("[parallel] hosts and hostfile are both given; keep one of them");
  if (!r.hosts.empty()) return parse_hosts(r.hosts);
  if (r.hostfile) return read_hostfile(*r.hostfile);
  if (slurm) return slurm->nodes;
  return {};
}

// Ends the wait for a host that has vanished from the network after about `seconds`; Open MPI's own settings
// take 480.
void keepalive(std::vector<std::string>& argv, double seconds) {
  if (seconds <= 0) return;  // no limit
  const int all = std::max(4, static_cast<int>(seconds));
  const int interval = std::max(1, all / 6);
  mca(argv, "oob_tcp_keepalive_time", fmt::format("{}", all - 3 * interval));
  mca(argv, "oob_tcp_keepalive_intvl", fmt::format("{}", interval));
  mca(argv, "oob_tcp_keepalive_probes", "3");
}

// ssh must fail, not ask for a password or wait for minutes.
void ssh_options(std::vector<std::string>& argv) {
  mca(argv, "plm_rsh_args", "-o BatchMode=yes -o ConnectTimeout=10");
}

std::string host_list(const std::vector<Host>& hosts) {
  std::string list;
  for (const Host& h : hosts) list += fmt::format("{}{}:{}", list.empty() ? "" : ",", h.name, h.slots);
  return list;
}

// The least instruction set of all hosts, when they differ in anything that changes which kernels run.
void agree_on_kernels(const std::vector<const HostFacts*>& facts, LaunchPlan& plan) {
  static const std::vector<std::string> order{"baseline", "avx2", "avx512"};
  std::set<std::string> isas, cpus;
  std::size_t least = order.size() - 1;
  for (const HostFacts* f : facts) {
    if (!f || f->isa.empty()) return;  // unknown: the ranks must agree
    isas.insert(f->isa);
    cpus.insert(f->cpu);
    least = std::min<std::size_t>(least, std::find(order.begin(), order.end(), f->isa) - order.begin());
  }
  if (cpus.size() < 2 && isas.size() < 2) return;
  const char* core = least == 2 ? "SkylakeX" : least == 1 ? "Haswell" : "Nehalem";
  plan.environment.emplace_back("REDCO_ISA", order[least]);
  plan.environment.emplace_back("OPENBLAS_CORETYPE", core);
  plan.notes.push_back(
      fmt::format("the hosts' CPUs differ ({}): all use {} kernels, so that replicas hold the same bits",
                  fmt::join(cpus, "; "), order[least]));
}

void check_connected(const LaunchRequest& r, const std::optional<SlurmJob>& slurm) {
  if (slurm && slurm->step_tasks > 1)
    throw UsageError(
        "srun started {} processes that are not connected by MPI; use `srun --mpi=pmix ...` (`srun "
        "--mpi=list` shows what this cluster has), or run the command once in the allocation, without srun",
        slurm->step_tasks);
  const auto pmi = r.environment.find("PMI_SIZE");
  if (pmi != r.environment.end() && pmi->second.size() < 9 && std::atoi(pmi->second.c_str()) > 1)
    throw UsageError(
        "another MPI's launcher started {} processes, but redco is built with Open MPI; use Open MPI's "
        "mpirun, or run the command once and let it start the ranks",
        pmi->second);
}

int cores_of(const LaunchRequest& r, const std::optional<SlurmJob>& slurm, const std::vector<Host>& hosts,
             std::size_t h) {
  const HostFacts* f = facts_for(r, hosts[h].name);
  int cores = f ? f->cores : 0;
  // In an allocation its CPUs count (they may be hardware threads; known cores are never exceeded).
  if (slurm)
    for (std::size_t i = 0; i < slurm->nodes.size() && i < slurm->cpus.size(); i++)
      if (slurm->nodes[i].name == hosts[h].name)
        cores = cores ? std::min(cores, slurm->cpus[i]) : slurm->cpus[i];
  return cores;
}

}  // namespace

HostFacts facts_of(const Machine& m) { return {m.hostname, m.usable_cores, m.isa, m.cpu, m.can_bind, m.cma}; }

LaunchPlan plan_launch(const LaunchRequest& r) {
  LaunchPlan plan;
  if (has(r.environment, "OMPI_COMM_WORLD_SIZE") || has(r.environment, "PMIX_RANK")) {
    plan.way = LaunchPlan::Way::rank;
    const auto size = r.environment.find("OMPI_COMM_WORLD_SIZE");
    plan.n_ranks = size == r.environment.end() ? 0 : std::max(0, std::atoi(size->second.c_str()));
    if (r.threads_per_rank) plan.threads_per_rank = static_cast<int>(*r.threads_per_rank);
    return plan;
  }
  const auto slurm = detect_slurm(r.environment);
  check_connected(r, slurm);

  const std::vector<Host> usable = usable_hosts(r, slurm);
  plan.n_ranks = r.n_ranks ? *r.n_ranks : !usable.empty() ? total_slots(usable) : r.n_model_shards;
  if (plan.n_ranks < 1 || r.n_model_shards < 1 || plan.n_ranks % r.n_model_shards != 0)
    throw UsageError("[parallel] {}={} is no multiple of n_model_shards={}; use {} or {}",
                     r.n_ranks                                 ? "n_ranks"
                     : slurm && r.hosts.empty() && !r.hostfile ? "the allocation's tasks"
                                                               : "slots",
                     plan.n_ranks, r.n_model_shards,
                     std::max<i64>(1, plan.n_ranks / std::max<i64>(1, r.n_model_shards)) * r.n_model_shards,
                     (plan.n_ranks / std::max<i64>(1, r.n_model_shards) + 1) * r.n_model_shards);
  if (usable.empty()) {
    plan.hosts = {{"localhost", static_cast<int>(plan.n_ranks)}};
  } else {
    const auto ranks = ranks_on(usable, plan.n_ranks);
    for (std::size_t h = 0; h < usable.size(); h++)
      if (ranks[h] > 0) plan.hosts.push_back({usable[h].name, ranks[h]});
  }
  const bool several = plan.hosts.size() > 1;
  std::vector<const HostFacts*> facts;
  for (const Host& h : plan.hosts) facts.push_back(facts_for(r, h.name));

  // Threads: the least share of any host, the same on all ranks.
  std::optional<int> share;
  bool all_known = true, fits = true, fills = false, can_bind = true, cma = true;
  for (std::size_t h = 0; h < plan.hosts.size(); h++) {
    const int cores = cores_of(r, slurm, plan.hosts, h);
    all_known = all_known && cores > 0;
    can_bind = can_bind && (!facts[h] || facts[h]->can_bind);
    cma = cma && (!facts[h] || facts[h]->cma);
    if (cores > 0) share = std::min(share.value_or(1 << 16), std::max(1, cores / plan.hosts[h].slots));
  }
  if (slurm && slurm->cpus_per_task > 0) {
    share = std::min(share.value_or(1 << 16), slurm->cpus_per_task);
    all_known = true;
  }
  if (r.threads_per_rank)
    plan.threads_per_rank = static_cast<int>(*r.threads_per_rank);
  else if (all_known)
    plan.threads_per_rank = share;
  const int threads = plan.threads_per_rank.value_or(1);
  for (std::size_t h = 0; h < plan.hosts.size(); h++) {
    const int cores = cores_of(r, slurm, plan.hosts, h), wanted = plan.hosts[h].slots * threads;
    if (cores > 0 && wanted > cores) {
      fits = false;
      plan.notes.push_back(
          fmt::format("{} ranks x {} threads share the {} usable cores of {}: slower than one thread a "
                      "core",
                      plan.hosts[h].slots, threads, cores, plan.hosts[h].name));
    }
    fills = fills || 2 * wanted > cores;
  }
  // Pinned only where the job takes more than half of a host: two small jobs would be pinned to the same
  // cores.
  plan.bound = plan.n_ranks > 1 && all_known && plan.threads_per_rank && fits && fills && can_bind && !slurm;
  if (!can_bind && plan.n_ranks > 1)
    plan.notes.push_back(
        "ranks aren't pinned to cores: the affinity of this process is limited or can't be set");

  const auto set = [&](const char* name, const std::string& value, bool keep_users) {
    if (!keep_users || !has(r.environment, name)) plan.environment.emplace_back(name, value);
  };
  if (plan.threads_per_rank) set("OMP_NUM_THREADS", fmt::format("{}", threads), false);
  set("OMP_WAIT_POLICY", "passive", true);
  // Threads that own their cores may look a moment for the next parallel region; others sleep at once.
  set("GOMP_SPINCOUNT", plan.bound ? "10000" : "0", true);
  agree_on_kernels(facts, plan);
  if (plan.n_ranks == 1 &&
      (plan.hosts[0].name == "localhost" || (facts[0] == &r.here) || (slurm && r.hosts.empty()))) {
    plan.way = LaunchPlan::Way::alone;
    return plan;
  }

  plan.way = LaunchPlan::Way::mpirun;
  std::vector<std::string>& argv = plan.argv;
  argv = {"mpirun",  "-n",  fmt::format("{}", plan.n_ranks), "--host", host_list(plan.hosts),
          "--stdin", "none"};
  if (plan.bound)
    argv.insert(argv.end(), {"--map-by", fmt::format("slot:PE={}", threads), "--bind-to", "core"});
  else
    argv.insert(argv.end(), {"--map-by", "slot", "--bind-to", "none"});
  if (!fits) argv.push_back("--oversubscribe");
  if (!cma) {
    mca(argv, "btl_vader_single_copy_mechanism", "none");
    plan.notes.push_back(
        "ranks can't read each other's memory here (seccomp or Yama): messages within a host are copied "
        "twice");
  }
  if (several || !facts[0] || (facts[0] != &r.here)) {
    keepalive(argv, r.fault_timeout);
    if (!slurm) ssh_options(argv);
  }
  // Environment for the ranks goes by -x: other hosts don't inherit it.
  for (const auto& [name, value] : plan.environment) argv.insert(argv.end(), {"-x", name + "=" + value});
  if (several)
    for (const char* name : {"LD_LIBRARY_PATH", "PATH"})
      if (has(r.environment, name)) argv.insert(argv.end(), {"-x", name});
  if (r.root) {
    plan.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT", "1");
    plan.environment.emplace_back("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
  }
  return plan;
}

std::vector<std::string> probe_argv(const std::vector<Host>& hosts, const LaunchRequest& r) {
  std::vector<Host> once;
  for (const Host& h : hosts) once.push_back({h.name, 1});
  std::vector<std::string> argv{"mpirun",
                                "-n",
                                fmt::format("{}", once.size()),
                                "--host",
                                host_list(once),
                                "--stdin",
                                "none",
                                "--map-by",
                                "slot",
                                "--bind-to",
                                "none"};
  keepalive(argv, r.fault_timeout);
  if (!detect_slurm(r.environment)) ssh_options(argv);
  return argv;
}

}  // namespace redco
