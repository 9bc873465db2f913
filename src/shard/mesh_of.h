// The mesh of a number of ranks: dp = ranks / shards.
#pragma once

#include <string>

#include "base/types.h"
#include "shard/layout.h"

namespace redco {

// Words of an error's text.
struct MeshNames {
  std::string ranks = "n_ranks", shards = "n_model_shards";  // what to change
  // The values and their places: "parallel.n_ranks=6 (job.yaml:3:12)"; "": name=value.
  std::string given_ranks, given_shards;
};

// UsageError that lists valid values: `ranks` is not a multiple of `shards`, or one of them is below 1.
Mesh mesh_of(i64 ranks, i64 shards, const MeshNames& names = {});

}  // namespace redco
