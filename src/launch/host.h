// Hosts, slots and the one parser of host names: parallel.hosts, hostfiles and SLURM's node lists have the
// same grammar. rank = dp_index * n_model_shards + mp_index. Ranks fill the hosts in their order, so that the
// ranks of one copy of the model run on the same host or on neighbours.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// How ssh reaches a host, where it differs from what ssh's own configuration says.
struct HostLogin {
  std::string user, identity, address;  // identity: a file with a private key; address: instead of the name
  int port = 0;                         // 0: not given
  bool given() const { return port || !user.empty() || !identity.empty() || !address.empty(); }
  bool operator==(const HostLogin&) const = default;
};

struct Host {
  std::string name;
  int slots = 1;  // the largest number of ranks on this host
  HostLogin login{};
  bool operator==(const Host&) const = default;
};
// A number of at most nine decimal digits; -1 for any other text.
i64 digits(std::string_view s);

// An entry of parallel.hosts: "node1:8 user=ann port=2222".
std::string text_of(const Host& host);

// The name without its domain, in lower case; an IP address unchanged.
std::string brief_name(std::string_view name);
// Whether two names mean the same host: equal but for upper case, or one is the other without its domain.
bool same_host(std::string_view a, std::string_view b);

// A list of hosts, built entry by entry. An entry is `node1`, `node1:8`, or compressed as SLURM writes it,
// `node[1-3,07]:8` (eight slots on each of node1 node2 node3 node07; several brackets multiply). A host
// without a number has one slot. Words may follow: `slots=8`, `max_slots=8` (of Open MPI's hostfiles; not
// less than slots), and HostLogin's `user=ann`, `port=2222`, `identity=FILE`, `address=fd00::7`; `ann@node1`
// is `node1 user=ann`. `where` begins the message of a UsageError: a bad entry, a host named twice, or more
// than 2^20 slots.
class HostList {
 public:
  void add(std::string_view entry, const std::string& where);
  void add(std::vector<Host> hosts, const std::string& where);
  const std::vector<Host>& hosts() const { return hosts_; }

 private:
  struct Seen {
    std::string name, where;
  };
  std::map<std::string, std::vector<Seen>> seen_;  // by brief_name()
  std::vector<Host> hosts_;
  i64 slots_ = 0;
};

// Entries separated by commas: "n[1-3,07],m2".
std::vector<Host> parse_list(std::string_view text, const std::string& where);
// The entries of parallel.hosts.
std::vector<Host> parse_hosts(const std::vector<std::string>& entries);
// A hostfile: one entry a line; empty lines and #-comments are skipped. Errors name file and line.
std::vector<Host> parse_hostfile(std::string_view text, const std::string& file);
std::vector<Host> read_hostfile(const std::string& path);
// The hosts that a job names: parallel.hosts or parallel.hostfile; UsageError where both are set. Empty
// where none is set.
std::vector<Host> hosts_of_job(const std::vector<std::string>& hosts,
                               const std::optional<std::string>& hostfile);

i64 total_slots(const std::vector<Host>& hosts);
// Words of ranks_on()'s error: who gives the slots ("": the hosts of the job), and how to get more.
struct SlotsNames {
  std::string owner, slot = "slot", remedy = "give the hosts more slots (name:slots)";
};
// Ranks on each host when n_ranks fill them in order. UsageError when there are more ranks than slots.
std::vector<int> ranks_on(const std::vector<Host>& hosts, i64 n_ranks, const SlotsNames& names = {});

}  // namespace redco
