// Hosts and slots: who runs where. Rank = dp_index * n_model_shards + mp_index, and hosts fill in their
// order, so that the ranks that share one copy of the model are neighbours.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

struct Host {
  std::string name;
  int slots = 1;  // ranks it takes
  bool operator==(const Host&) const = default;
};

// "node1:8" or "node1" (one slot). `where` begins the message of a UsageError: "[parallel] hosts[0]".
Host parse_host(std::string_view text, const std::string& where);
// The hosts of parallel.hosts. UsageError on a bad entry, a host named twice, or too many slots.
std::vector<Host> parse_hosts(const std::vector<std::string>& texts);
// A hostfile: a host a line, as `node1`, `node1:8` or Open MPI's `node1 slots=8` (max_slots is accepted and
// must not be less); empty lines and #-comments are skipped. Errors name file and line.
std::vector<Host> parse_hostfile(std::string_view text, const std::string& file);
std::vector<Host> read_hostfile(const std::string& path);

i64 total_slots(const std::vector<Host>& hosts);
// Ranks on each host when n_ranks fill them in order. UsageError when there are more ranks than slots.
std::vector<int> ranks_on(const std::vector<Host>& hosts, i64 n_ranks);
// Index of the host of a rank.
int host_of_rank(const std::vector<Host>& hosts, i64 rank);

}  // namespace redco
