// The machines of a plan: hosts, their slots, their memory.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"
#include "shard/layout.h"

namespace redco {

struct Machines {
  std::vector<int> slots;   // largest number of ranks per host; ranks fill the hosts in order
  i64 memory = 0;           // bytes of one device (own_memory) or of one host
  bool own_memory = false;  // each rank has `memory` bytes; else the ranks of a host share them
  // If the hosts are known: name and bytes of each, in place of `memory`.
  std::vector<std::string> names;
  std::vector<i64> memories;
  std::string text;  // "2 hosts x 4 devices x 32 GiB", for people

  i64 ranks() const;
  int host_of(i64 rank) const;
  // The largest number of ranks on a host when n ranks run.
  int most_ranks_per_host(i64 n) const;
  // The host with the least memory per rank when n ranks run.
  struct Share {
    i64 ranks = 1, memory = 0;  // of the host
    std::string host;           // "" if hosts have no names
    i64 of_rank() const { return memory / ranks; }
  };
  Share tightest(i64 n) const;
};

// "2 x 4 x 32GiB": hosts x devices per host x memory per device; units GiB, MiB, TiB, GB, MB, TB. UsageError
// for other texts.
Machines parse_devices(const std::string& text);

// Traffic of the groups of a mesh axis between hosts.
struct Crossing {
  bool crosses = false;
  // Bytes between hosts per byte of a collective, summed over all ranks: of an all_reduce (both phases
  // counted), an all_gather (per byte of the result), a reduce_scatter (per byte of the whole terms), an
  // all_to_all. Sums and gathers pass each byte once between two hosts, whatever ranks they have
  // (comm/hosts.h).
  double all_reduce = 0, all_gather = 0, reduce_scatter = 0, exchange = 0;
};
Crossing crossing(const Machines& m, const Mesh& mesh, Axis axis);

}  // namespace redco
