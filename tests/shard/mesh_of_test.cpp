#include "shard/mesh_of.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/error_text.h"

namespace redco {
namespace {

std::string no_mesh(i64 ranks, i64 shards, const MeshNames& names = {}) {
  return usage_error([&] { mesh_of(ranks, shards, names); });
}

TEST(MeshOf, DividesTheRanksByTheShards) {
  EXPECT_EQ(mesh_of(6, 2).dp(), 3);
  EXPECT_EQ(mesh_of(6, 2).mp(), 2);
  EXPECT_EQ(mesh_of(1, 1).ranks(), 1);
}

TEST(MeshOf, OtherNumbersAreErrorsWithAllRemedies) {
  EXPECT_EQ(no_mesh(6, 4),
            "[mesh] n_ranks=6 is not a multiple of n_model_shards=4; use n_ranks 4, 8 or 12, or "
            "n_model_shards 1, 2, 3, 6");
  EXPECT_EQ(no_mesh(2, 4, {.ranks = "--ranks", .shards = "--model-shards"}),
            "[mesh] --ranks=2 is not a multiple of --model-shards=4; use --ranks 4, 8 or 12, or "
            "--model-shards 1, 2");
  EXPECT_EQ(no_mesh(3, 2, {.given_ranks = "the number of started ranks (3)"}).find("[mesh] the number of st"),
            0);
  EXPECT_EQ(no_mesh(0, 2), "[mesh] n_ranks=0, n_model_shards=2: expected at least 1");
}

}  // namespace
}  // namespace redco
