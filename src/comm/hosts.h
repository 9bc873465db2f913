// Hosts: where the ranks of a group are, and so the way of their collectives. A sum has four steps, of which
// only the second and third have messages between hosts:
//   1. on each host, each slice of the data has one rank that gets it from the others of the host, and adds
//      the subtrees of the sum whose ranks are all there (as large as possible);
//   2. it sends these sums to the slice's owner, which adds them to the sums of its host;
//   3. the owner sends the result to the ranks of its host, and to one rank of each other host;
//   4. that rank passes it on to the others of its host.
// So between two hosts there is one message for each slice and direction. Rank r owns slice (or block) r; on
// another host, the rank with the same position there works for it. An all-gather is steps 3 and 4. The bits
// do not depend on the hosts, since only whole subtrees are added early. On one host steps 2 and 4 have no
// messages; if each host has one rank, steps 1 and 4 have none.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "base/types.h"

namespace redco {

// The ranks [first, first + n) of the tree of comm/sums.h.
struct Subtree {
  int first, n;
};

// The staging memory of a piece of a sum, of which a rank holds `staged` slices. A slice has at least 32 KiB:
// below, the cost of a message is larger than that of its bytes. (2 MiB of 1,024 slices would be 2 KiB each.)
inline i64 piece_bytes(i64 staged) { return std::max(i64{2} << 20, staged * (i64{32} << 10)); }
// Pieces in flight, so that they take 16 MiB, or two pieces if these are larger.
inline i64 pieces_in_flight(i64 staged) {
  return std::clamp<i64>((i64{16} << 20) / piece_bytes(staged), 2, 8);
}

// For each host the largest subtrees whose ranks are all there, in rank order. host_of[r]: 0 to n_hosts - 1.
std::vector<std::vector<Subtree>> subtrees_of_hosts(std::span<const int> host_of, int n_hosts);

class Hosts {
 public:
  // host_of[r] is any number that the ranks of a host share.
  Hosts(int rank, const std::vector<int>& host_of);

  int size() const { return static_cast<int>(ranks_.size()); }
  // Hosts are numbered in the order of their first ranks.
  int host_of(int r) const { return host_of_[r]; }
  int mine() const { return mine_; }
  std::span<const int> ranks(int host) const { return ranks_[host]; }
  int position(int r) const { return position_[r]; }  // of a rank among those of its host
  int first(int host) const { return ranks_[host][0]; }
  // The rank of a host that works for rank r: r on its own host.
  int proxy(int host, int r) const { return ranks_[host][position_[r] % ranks_[host].size()]; }
  // The ranks that rank r of this rank's host works for: itself, and others of other hosts.
  std::span<const int> served_by(int r) const { return served_[position_[r]]; }
  // The largest subtrees whose ranks are all on this host, in rank order.
  std::span<const Subtree> subtrees(int host) const { return subtrees_[host]; }
  // Those of all hosts: together they are the tree.
  std::span<const Subtree> all_subtrees() const { return all_subtrees_; }
  // The most slices that a rank has in memory in addition to its own data, while it sums. Equal on all ranks.
  int most_staged() const { return most_staged_; }

 private:
  std::vector<int> host_of_, position_;
  std::vector<std::vector<int>> ranks_;
  int mine_;
  std::vector<std::vector<int>> served_;  // by position on this host
  std::vector<std::vector<Subtree>> subtrees_;
  std::vector<Subtree> all_subtrees_;
  int most_staged_ = 0;
};

}  // namespace redco
