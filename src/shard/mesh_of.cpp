#include "shard/mesh_of.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace redco {

Mesh mesh_of(i64 ranks, i64 shards, const MeshNames& names) {
  if (ranks >= 1 && shards >= 1 && ranks % shards == 0)
    return Mesh(static_cast<int>(ranks / shards), static_cast<int>(shards));
  const auto given = [](const std::string& text, const std::string& name, i64 value) {
    return text.empty() ? fmt::format("{}={}", name, value) : text;
  };
  const std::string given_ranks = given(names.given_ranks, names.ranks, ranks),
                    given_shards = given(names.given_shards, names.shards, shards);
  if (ranks < 1 || shards < 1)
    throw UsageError("[mesh] {}, {}: expected at least 1", given_ranks, given_shards);
  const i64 below = std::max<i64>(ranks / shards, 1) * shards;
  std::vector<i64> divisors;
  for (i64 d = 1; d <= ranks; ++d)
    if (ranks % d == 0) divisors.push_back(d);
  throw UsageError("[mesh] {} is not a multiple of {}; use {} {}, {} or {}, or {} {}", given_ranks,
                   given_shards, names.ranks, below, below + shards, below + 2 * shards, names.shards,
                   fmt::join(divisors, ", "));
}

}  // namespace redco
