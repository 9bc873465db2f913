#include "launch/threads_per_rank.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"

namespace redco {

namespace {

// 0: unknown.
int cores_of(const LaunchRequest& r, const std::optional<SlurmJob>& slurm, const Host& host) {
  const HostFacts* f = facts_for(r, host.name);
  int cores = f ? f->cores : 0;
  // In an allocation the allocated CPUs are the limit. They may be hardware threads, so known cores are one
  // too.
  if (slurm)
    for (std::size_t i = 0; i < slurm->nodes.size() && i < slurm->cpus.size(); i++)
      if (slurm->nodes[i].name == host.name) cores = cores ? std::min(cores, slurm->cpus[i]) : slurm->cpus[i];
  return cores;
}

}  // namespace

ThreadShare threads_per_rank(const LaunchRequest& r, const std::optional<SlurmJob>& slurm,
                             const std::vector<Host>& hosts) {
  ThreadShare out;
  std::optional<int> share;
  for (const Host& h : hosts) {
    const int cores = cores_of(r, slurm, h);
    out.all_known = out.all_known && cores > 0;
    if (cores > 0) share = std::min(share.value_or(1 << 16), std::max(1, cores / h.slots));
  }
  if (slurm && slurm->cpus_per_task > 0) {
    share = std::min(share.value_or(1 << 16), slurm->cpus_per_task);
    out.all_known = true;
  }
  if (r.threads_per_rank) {
    out.threads = static_cast<int>(*r.threads_per_rank);
  } else if (out.all_known) {
    out.threads = share;
  }
  const int threads = out.threads.value_or(1);
  for (const Host& h : hosts) {
    const int cores = cores_of(r, slurm, h), wanted = h.slots * threads;
    if (cores > 0 && wanted > cores) {
      out.fits = false;
      out.notes.push_back(fmt::format(
          "{} x {} share the {} of {}, which is slower than one thread per core. Lower "
          "parallel.threads_per_rank or the number of ranks",
          counted(h.slots, "rank"), counted(threads, "thread"), counted(cores, "usable core"), h.name));
    }
    out.fills = out.fills || 2 * wanted > cores;
  }
  return out;
}

}  // namespace redco
