// A map from byte strings to numbers. It finds every key that is a prefix of a text.
//
// The nodes are stored level by level in one array. The children of a node are adjacent there, and their
// first bytes are adjacent in a second array, so that a step reads only a few neighbouring bytes.
#pragma once

#include <array>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.h"

namespace redco {

// Immutable and thread-safe.
class Trie {
 public:
  Trie() = default;

  // Pairs (key, value >= 0). The last of equal keys wins; empty keys never match. The keys are not kept.
  explicit Trie(std::vector<std::pair<std::string_view, i32>> keys);

  bool empty() const { return nodes_.empty(); }

  // Calls f(length, value) for every key that is a prefix of [p, end), shortest first.
  template <class F>
  void prefixes(const char* p, const char* end, F&& f) const {
    if (p == end || nodes_.empty()) return;
    u32 at = roots_[static_cast<unsigned char>(*p)];
    for (const char* q = p + 1; at != 0; ++q) {
      if (nodes_[at].value >= 0) f(static_cast<std::size_t>(q - p), nodes_[at].value);
      if (q == end) break;
      at = child(at, static_cast<unsigned char>(*q));
    }
  }

  // The length and value of the longest such key, or {0, -1}.
  std::pair<std::size_t, i32> longest(const char* p, const char* end) const {
    std::pair<std::size_t, i32> best{0, -1};
    prefixes(p, end, [&](std::size_t n, i32 value) { best = {n, value}; });
    return best;
  }

 private:
  struct Node {
    u32 first = 0;  // index of the first child
    u32 count = 0;  // number of children
    i32 value = -1;
  };

  // The child of node `at` for byte b, or 0.
  u32 child(u32 at, unsigned char b) const {
    const Node& n = nodes_[at];
    const unsigned char* labels = labels_.data() + n.first;
    if (n.count > 8) {
      const void* hit = std::memchr(labels, b, n.count);
      return hit == nullptr ? 0 : n.first + static_cast<u32>(static_cast<const unsigned char*>(hit) - labels);
    }
    for (u32 k = 0; k < n.count; ++k)
      if (labels[k] == b) return n.first + k;
    return 0;
  }

  std::array<u32, 256> roots_{};  // the node of each first byte; 0: none
  std::vector<Node> nodes_;       // [0] is the root
  std::vector<unsigned char> labels_;
};

}  // namespace redco
