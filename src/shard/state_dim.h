// The dim of a tensor that sharded training state (state_sharding.h) cuts over the data axes.
#pragma once

#include "shard/layout.h"

namespace redco {

// The first dim of which a rank holds more than one index after the model axes have cut the tensor: 0 for
// most tensors, 1 for stacked experts of which each rank has one. So a replica's part stays one block of
// memory. `l`: the layout without the data axes' cuts. REQUIRES: a dim.
int state_dim(const Layout& l, const Shape& shape, const Mesh& m);

// Elements of the local block before index `at` of dim `dim`, if the earlier dims have at most one index.
i64 elements_before(const Shape& local, int dim, i64 at);

}  // namespace redco
