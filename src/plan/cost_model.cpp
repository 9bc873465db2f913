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

// The time of a collective between `members` from that between `measured` ones: the latency, that of 8 bytes,
// grows with the depth of a tree; of the rest, a member has the part (members - 1) / members.
struct Scaled {
  double latency = 0, bytes = 0;
};
Scaled scaled(const SpeedTable& t, double n, double members, double measured) {
  const double at[] = {n}, least[] = {8.0};
  const double latency = 8 * t(least), all = n * t(at);
  return {std::min(all, latency) * std::log2(members) / std::log2(measured),
          std::max(0.0, all - latency) * ((members - 1) / members) / ((measured - 1) / measured)};
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
  const char* const name = measured_as(kind);
  if (const auto it = speeds_.collectives.find(name); g.per_host > 1 && it != speeds_.collectives.end()) {
    const Scaled s = scaled(it->second, n, g.per_host, std::max(2, speeds_.key.ranks));
    t.busy = s.latency + s.bytes;
  }
  if (const auto it = speeds_.network.find(name); g.hosts > 1 && it != speeds_.network.end()) {
    const Scaled s = scaled(it->second, n, g.hosts, std::max(2, speeds_.network_hosts));
    t.network = s.latency + s.bytes * g.sharing;
  }
  return t;
}

}  // namespace redco
