// Replicas with different bits are found and named.
#include "train/replica_check.h"

#include <gtest/gtest.h>

#include <bit>

#include "models/spec_builder.h"
#include "nn/param_tree.h"
#include "support/ranks.h"
#include "tensor/transfer.h"

namespace redco {
namespace {

using redco::testing::on_mesh;

// A column-parallel layer, whose weight is sharded over mp, and a norm, which is replicated over mp.
ParamTree some_params(int mp) {
  ModelParams specs;
  SpecBuilder s(specs);
  s.linear("h.0.mlp.fc_in", 8, 8, true, 1);
  s.norm("h.0.ln_1", 8, true);
  ParamTree tree = make_params(specs, shard_specs(specs.specs, mp, {}).layouts);
  initialize(tree, 1);
  return tree;
}

// The error on rank `who` after rank `changed` changed one bit of `name`.
std::string error_after(const Mesh& mesh, int changed, const std::string& name) {
  std::string said;
  on_mesh(mesh, [&](Context& c) {
    const ParamTree params = some_params(mesh.mp());
    check_replicas(params, 100);  // equal so far
    if (c.rank() == changed) {
      std::vector<float> values = host_copy<float>(params[name]);
      values[0] = std::bit_cast<float>(std::bit_cast<u32>(values[0]) ^ 1);
      copy_from_host<float>(values, params[name]);
    }
    std::string mine;
    try {
      check_replicas(params, 200);
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), ExitCode::rank_failed);
      mine = e.what();
    }
    EXPECT_NE(mine, "") << "rank " << c.rank();
    if (c.rank() == 0) said = mine;
  });
  return said;
}

TEST(ReplicaCheck, ADriftedReplicaIsNamed) {
  const std::string said = error_after({3, 1}, 1, "h.0.mlp.fc_in.weight");
  EXPECT_NE(said.find("step 200"), said.npos) << said;
  EXPECT_NE(said.find("; rank 1 ("), said.npos) << said;
}

TEST(ReplicaCheck, AShardThatDriftsFromItsReplicasIsFound) {
  EXPECT_NE(error_after({3, 2}, 3, "h.0.mlp.fc_in.weight").find("; rank 3 ("), std::string::npos);
}

TEST(ReplicaCheck, AParameterThatIsReplicatedOverModelShardsIsComparedOverThem) {
  EXPECT_NE(error_after({1, 3}, 2, "h.0.ln_1.weight").find("; rank 2 ("), std::string::npos);
}

}  // namespace
}  // namespace redco
