// The CPU's kernels. Each family enters its own kernels in the table, in the file that has them.
#pragma once

#include "kernels/table.h"

namespace redco::kernels {

void add_attention(Kernels& table);
void add_convolutions(Kernels& table);
void add_copies(Kernels& table);  // and casts
void add_elementwise(Kernels& table);
void add_embedding(Kernels& table);  // rows by id, and rotary positions
void add_experts(Kernels& table);
void add_norms(Kernels& table);
void add_optimizers(Kernels& table);
void add_pooling(Kernels& table);
void add_products(Kernels& table);  // products/linear.cpp
void add_randomness(Kernels& table);
void add_reductions(Kernels& table);
void add_softmax(Kernels& table);  // and cross-entropy

}  // namespace redco::kernels
