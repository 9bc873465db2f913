#include "comm/hosts.h"

#include <algorithm>

#include "comm/sums.h"

namespace redco {

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

  subtrees_.resize(ranks_.size());
  if (collect(0, p) >= 0) subtrees_[mine_].push_back({0, p});
  const auto by_rank = [](const Subtree& a, const Subtree& b) { return a.first < b.first; };
  for (auto& s : subtrees_) {
    std::sort(s.begin(), s.end(), by_rank);
    all_subtrees_.insert(all_subtrees_.end(), s.begin(), s.end());
  }
  std::sort(all_subtrees_.begin(), all_subtrees_.end(), by_rank);

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

int Hosts::collect(int first, int n) {
  if (n == 1) return host_of_[first];
  const int h = left_subtree(n);
  const int a = collect(first, h), b = collect(first + h, n - h);
  if (a == b) return a;
  if (a >= 0) subtrees_[a].push_back({first, h});
  if (b >= 0) subtrees_[b].push_back({first + h, n - h});
  return -1;
}

}  // namespace redco
