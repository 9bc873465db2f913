#include "tokenizers/models/trie.h"

#include <algorithm>

namespace redco {

Trie::Trie(std::vector<std::pair<std::string_view, i32>> keys) {
  std::erase_if(keys, [](const auto& k) { return k.first.empty(); });
  if (keys.empty()) return;
  std::stable_sort(keys.begin(), keys.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  // Breadth-first construction: a node of depth d has the keys [from, to), whose first d bytes are equal.
  struct Part {
    u32 node;
    std::size_t from, to;
  };
  nodes_.emplace_back();
  labels_.push_back(0);
  std::vector<Part> level{{0, 0, keys.size()}}, next;
  for (std::size_t depth = 0; !level.empty(); ++depth) {
    next.clear();
    for (Part part : level) {
      for (; part.from < part.to && keys[part.from].first.size() == depth; ++part.from)
        nodes_[part.node].value = keys[part.from].second;
      nodes_[part.node].first = static_cast<u32>(nodes_.size());
      for (std::size_t k = part.from; k < part.to;) {
        const char label = keys[k].first[depth];
        std::size_t e = k;
        while (e < part.to && keys[e].first[depth] == label) ++e;
        next.push_back({static_cast<u32>(nodes_.size()), k, e});
        nodes_.emplace_back();
        labels_.push_back(static_cast<unsigned char>(label));
        ++nodes_[part.node].count;
        k = e;
      }
    }
    level.swap(next);
  }
  for (u32 k = 0; k < nodes_[0].count; ++k) roots_[labels_[nodes_[0].first + k]] = nodes_[0].first + k;
}

}  // namespace redco
