// Sharding of the training state over the replicas (Rajbhandari et al. 2020, "ZeRO", stages 1 to 3): what
// each rank holds only a part of. The part is its rows: a dim of what the model axes leave
// (shard/state_dim.h) is sharded over the data axes too. So a part is an ordinary placement, and checkpoints,
// resumes on other meshes and plans need nothing else.
#pragma once

#include "shard/layout.h"

namespace redco {

enum class StateSharding : std::uint8_t {
  none,        // every replica holds all
  optimizer,   // the optimizer's tensors
  gradients,   // and the gradients, reduced after each micro-batch
  parameters,  // and the parameters, gathered where an op uses them
};
// Those that shard something, in the order in which each includes the earlier ones.
inline constexpr StateSharding kSharded[] = {StateSharding::optimizer, StateSharding::gradients,
                                             StateSharding::parameters};
inline const char* name_of(StateSharding s) {
  constexpr const char* kNames[] = {"none", "shard_optimizer", "shard_gradients", "shard_parameters"};
  return kNames[static_cast<int>(s)];
}

// `l` with its state_dim() sharded over the data axes too. Scalars are unchanged.
Layout sharded_over_replicas(Layout l, const Shape& shape, const Mesh& m);

}  // namespace redco
