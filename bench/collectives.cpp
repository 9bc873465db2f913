// Times of collectives over all ranks, for each size the median of 5 rounds:
//   mpirun -n 2 build/bench/bench_collectives [messages]
// messages: all messages through MPI, as between hosts.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <vector>

#include "comm/group.h"

namespace {

using redco::Group;
using redco::i64;
using Clock = std::chrono::steady_clock;

// Microseconds of a call of f.
template <class F>
double time_of(Group& world, i64 bytes, const F& f) {
  const i64 n = std::clamp<i64>((i64{64} << 20) / std::max<i64>(bytes, 1), 4, 2000);
  std::vector<double> rounds;
  for (int round = 0; round < 6; ++round) {
    world.barrier();
    const auto begin = Clock::now();
    for (i64 i = 0; i < n; ++i) f();
    const double us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    if (round > 0) rounds.push_back(us / static_cast<double>(n));
  }
  std::sort(rounds.begin(), rounds.end());
  return rounds[rounds.size() / 2];
}

void run(Group& world) {
  const int p = world.size();
  if (world.rank() == 0)
    fmt::print("{:>10} {:>12} {:>14} {:>12}   us on {} ranks\n", "bytes", "all_reduce", "reduce_scatter",
               "all_gather", p);
  for (const i64 bytes : {i64{4}, i64{3} << 10, i64{64} << 10, i64{2} << 20, i64{64} << 20}) {
    const i64 n = bytes / 4, share = n / p;
    std::vector<float> x(static_cast<std::size_t>(n), 1), y(x);
    std::vector<i64> counts(static_cast<std::size_t>(p), share);
    counts[0] += n - share * p;
    float* const mine = y.data() + (world.rank() ? n - (p - world.rank()) * share : 0);
    const double reduce = time_of(world, bytes, [&] { world.all_reduce(x.data(), n); });
    const double scatter = time_of(world, bytes, [&] { world.reduce_scatter(x.data(), mine, counts); });
    const double gather = time_of(world, bytes, [&] { world.all_gather(mine, y.data(), counts); });
    if (world.rank() == 0)
      fmt::print("{:>10} {:>12.1f} {:>14.1f} {:>12.1f}\n", bytes, reduce, scatter, gather);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const bool messages = argc > 1 && std::strcmp(argv[1], "messages") == 0;
  {
    const auto world =
        messages ? redco::make_mpi_world([](int rank) { return rank; }) : redco::make_mpi_world();
    run(*world);
  }
  redco::mpi_finalize();
}
