#include "plan/cost_model.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace redco {

namespace {

GroupShape shape_of(const Machines& m, const std::vector<i64>& ranks) {
  std::map<int, int> on_host;
  for (const i64 r : ranks) ++on_host[m.host_of(r)];
  GroupShape g;
  g.ranks = static_cast<int>(ranks.size());
  g.hosts = static_cast<int>(on_host.size());
  for (const auto& [host, n] : on_host) g.per_host = std::max(g.per_host, n);
  return g;
}

// How often a collective sends each byte, as a share of one round of all ranks.
double rounds_of(Collective kind) { return kind == Collective::all_reduce ? 2 : 1; }

const char* measured_as(Collective kind) {
  switch (kind) {
    case Collective::all_reduce:
    case Collective::reduce_scatter:
    case Collective::all_gather:
      return name_of(kind);
    default:
      return "all_gather";
  }
}

}  // namespace

GroupShape shape_of(const Machines& m, const Mesh& mesh, Axis axis, int rank) {
  std::vector<i64> ranks;
  const int n = mesh.size(axis), stride = mesh.stride(axis);
  const int first = rank - coord_of(mesh, rank).at(axis) * stride;
  for (int i = 0; i < n; ++i) ranks.push_back(first + i64{i} * stride);
  GroupShape g = shape_of(m, ranks);
  // The other ranks of a host are in groups like this one.
  g.sharing =
      std::max(1, std::min(m.most_ranks_per_host(mesh.ranks()), mesh.ranks() / n * g.per_host) / g.per_host);
  return g;
}

GroupShape shape_of_all(const Machines& m, const Mesh& mesh) {
  std::vector<i64> ranks;
  for (int i = 0; i < mesh.ranks(); ++i) ranks.push_back(i);
  return shape_of(m, ranks);
}

double CostModel::kernel(const CallWork& w, double distance) const {
  kernels::ReuseDistance nothing;
  const SpeedTable* t = speeds_.kernel(w.kind);
  std::vector<double> at = w.at;
  double units = w.units;
  if (!t || t->axes.size() != at.size() + 1) {
    t = speeds_.kernel(kAnyKernel);
    if (!t || t->axes.size() != 2) return 0;
    units = 0;
    for (const View& v : w.operands) units += static_cast<double>(kernels::bytes_touched(v));
    at = {std::max(1.0, units)};
  }
  at.push_back(distance);
  return units * (*t)(at);
}

double CostModel::kernel(const CallWork& w, kernels::ReuseDistance& memory) const {
  double all = 0, sum = 0;
  for (const View& v : w.operands)
    memory.touch(v, [&](double bytes, double distance) {
      all += bytes;
      sum += bytes * kernel(w, std::max(1.0, distance));
    });
  return all > 0 ? sum / all : 0;
}

CostModel::Transfer CostModel::collective(Collective kind, i64 bytes, const GroupShape& g) const {
  Transfer t;
  if (g.ranks == 1) return t;
  const double n = static_cast<double>(std::max<i64>(bytes, 8));
  // Inside a host: measured with all ranks of a host. Each rank has the part (ranks - 1) / ranks of the
  // traffic, and latencies grow with the depth of a tree.
  if (const auto it = speeds_.collectives.find(measured_as(kind));
      g.per_host > 1 && it != speeds_.collectives.end()) {
    const double measured = std::max(2, speeds_.key.ranks), here = g.per_host;
    const double at[] = {n}, least[] = {8.0};
    const double latency = 8 * it->second(least), all = n * it->second(at);
    t.busy = std::min(all, latency) * std::log2(here) / std::log2(measured) +
             std::max(0.0, all - latency) * ((here - 1) / here) / ((measured - 1) / measured);
  }
  if (g.hosts > 1) {
    const double h = g.hosts, rounds = rounds_of(kind);
    t.network = rounds * speeds_.network_latency_s * std::log2(std::max(2.0, h));
    if (speeds_.network_bytes_per_s > 0)
      t.network += rounds * n * (h - 1) / h * g.sharing / speeds_.network_bytes_per_s;
  }
  return t;
}

}  // namespace redco
