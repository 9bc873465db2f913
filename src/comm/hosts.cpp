#include "comm/hosts.h"

#include <algorithm>

#include "comm/sums.h"

namespace redco {

namespace {

// The host of the ranks [first, first + n), or -1 if there are several. Then `out` gets the subtrees below.
int collect_subtrees(std::span<const int> host_of, int first, int n, std::vector<std::vector<Subtree>>& out) {
  if (n == 1) return host_of[first];
  const int h = left_subtree(n);
  const int a = collect_subtrees(host_of, first, h, out);
  const int b = collect_subtrees(host_of, first + h, n - h, out);
  if (a == b) return a;
  if (a >= 0) out[a].push_back({first, h});
  if (b >= 0) out[b].push_back({first + h, n - h});
  return -1;
}

}  // namespace

std::vector<std::vector<Subtree>> subtrees_of_hosts(std::span<const int> host_of, int n_hosts) {
  std::vector<std::vector<Subtree>> out(n_hosts);
  const int n = static_cast<int>(host_of.size());
  if (const int only = collect_subtrees(host_of, 0, n, out); only >= 0) out[only].push_back({0, n});
  for (auto& of_host : out) std::ranges::sort(of_host, {}, &Subtree::first);
  return out;
}

Hosts::Hosts(int rank, const std::vector<int>& host_of) {
  const int p = static_cast<int>(host_of.size());
  for (int r = 0; r < p; ++r) {
    const int same =
        static_cast<int>(std::find(host_of.begin(), host_of.end(), host_of[r]) - host_of.begin());
    host_of_.push_back(same < r ? host_of_[same] : size());
    if (same == r) ranks_.emplace_back();
    position_.push_back(static_cast<int>(ranks_[host_of_[r]].size()));
    ranks_[host_of_[r]].push_back(r);
  }
  mine_ = host_of_[rank];

  subtrees_ = subtrees_of_hosts(host_of_, size());
  for (const auto& of_host : subtrees_)
    all_subtrees_.insert(all_subtrees_.end(), of_host.begin(), of_host.end());
  std::ranges::sort(all_subtrees_, {}, &Subtree::first);

  // Of others, each rank begins with those after it, so that not all send to the same rank first.
  std::vector<int> served(static_cast<std::size_t>(p));
  for (const int me : ranks_[mine_]) {
    std::vector<int>& list = served_.emplace_back(1, me);
    for (int k = 1; k < p; ++k) {
      const int r = (me + k) % p;
      if (host_of_[r] != mine_ && proxy(mine_, r) == me) list.push_back(r);
    }
  }
  for (int r = 0; r < p; ++r)
    for (int h = 0; h < size(); ++h) ++served[proxy(h, r)];
  for (int r = 0; r < p; ++r) {
    const int own = host_of_[r], others = static_cast<int>(ranks_[own].size()) - 1;
    most_staged_ = std::max(most_staged_, served[r] * others + static_cast<int>(all_subtrees_.size()) -
                                              static_cast<int>(subtrees_[own].size()));
  }
}

}  // namespace redco
