#include "plan/measure_collectives.h"

#include <algorithm>
#include <vector>

#include "base/process.h"
#include "base/timing.h"
#include "tensor/ledger.h"

namespace redco {

RankPlace place_of_rank(Group& world) {
  RankPlace out;
  const std::vector<std::string> names = world.gather(host_name());
  std::vector<std::string> hosts;
  std::map<std::string, int> ranks_of;
  for (int r = 0; r < world.size(); ++r) {
    auto at = std::find(hosts.begin(), hosts.end(), names[static_cast<std::size_t>(r)]);
    if (at == hosts.end()) at = hosts.insert(hosts.end(), names[static_cast<std::size_t>(r)]);
    const int before = ranks_of[*at]++;
    if (r == world.rank()) {
      out.host = static_cast<int>(at - hosts.begin());
      out.place = before;
    }
  }
  out.hosts = static_cast<int>(hosts.size());
  out.least_ranks = world.size();
  for (const auto& [host, n] : ranks_of) out.least_ranks = std::min(out.least_ranks, n);
  return out;
}

std::map<std::string, SpeedTable> measure_collectives(Group& group, Probes& p) {
  constexpr double kLong = 0.3;  // s
  std::map<std::string, SpeedTable> out;
  if (group.size() == 1) return out;
  const int n = group.size();
  for (const Collective kind : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather}) {
    SpeedTable t;
    t.axes.emplace_back();
    double last = 0;
    for (const i64 bytes :
         {i64{8}, i64{1} << 10, i64{16} << 10, i64{128} << 10, i64{1} << 20, i64{8} << 20, i64{32} << 20}) {
      if (last > kLong) break;
      const i64 elements = std::max<i64>(n, bytes / 4), share = elements / n;
      std::vector<float> x(static_cast<std::size_t>(share * n)), y(x);
      const std::vector<i64> counts(static_cast<std::size_t>(n), share);
      float* const mine = y.data() + share * group.rank();
      const double s = p.seconds_of(
          [&] {
            if (kind == Collective::all_reduce) group.all_reduce(x.data(), share * n);
            if (kind == Collective::reduce_scatter) group.reduce_scatter(x.data(), mine, counts);
            if (kind == Collective::all_gather) group.all_gather(mine, y.data(), counts);
          },
          group);
      t.axes[0].push_back(static_cast<double>(bytes));
      t.values.push_back(s / static_cast<double>(bytes));
      last = s;
    }
    out[name_of(kind)] = std::move(t);
  }
  return out;
}

void warm_up(Group& across) {
  std::vector<float> data(static_cast<std::size_t>(1) << 20);
  const double begin = seconds();
  bool more = true;
  while (more) {
    across.all_reduce(data.data(), static_cast<i64>(data.size()));
    more = across.agree(i64{seconds() - begin < 0.5}) != 0;
  }
}

}  // namespace redco
