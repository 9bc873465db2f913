// The machines a plan is made for: hosts, ranks they take, memory.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "shard/layout.h"

namespace redco {

struct Machines {
  std::vector<int> slots;   // ranks each host takes; ranks fill the hosts in order
  i64 memory = 0;           // bytes of one device (own_memory) or of one host
  bool own_memory = false;  // each rank has `memory` of its own; else the ranks of a host share it
  // Where the hosts are known: name and bytes of each, in place of `memory`.
  std::vector<std::string> names;
  std::vector<i64> memories;
  std::string text;  // "2 hosts x 4 devices x 32 GiB", for people

  i64 ranks() const;
  int host_of(i64 rank) const;
  // Ranks of the fullest host when the first n ranks run.
  int most_ranks_per_host(i64 n) const;
  // The host that leaves its ranks the least memory when the first n ranks run.
  struct Share {
    i64 ranks = 1, memory = 0;  // of the host
    std::string host;           // "" where hosts have no names
    i64 of_rank() const { return memory / ranks; }
  };
  Share tightest(i64 n) const;
};

// "2 x 4 x 32GiB": hosts x devices x memory of a device; units GiB, MiB, TiB, GB, MB, TB. UsageError
// otherwise.
Machines parse_devices(const std::string& text);

// What the mp groups of a mesh send from host to host.
struct Crossing {
  bool crosses = false;
  // Share of a collective's bytes that one rank sends to other hosts, summed over all ranks: times bytes of
  // an all_reduce (two phases count twice), all_gather (of the result) or reduce_scatter / all_to_all.
  double all_reduce = 0, all_gather = 0, exchange = 0;
};
Crossing crossing(const Machines& m, const Mesh& mesh, Axis axis);

}  // namespace redco
