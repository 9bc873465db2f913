// The CPU's kernels, entered in the table in three parts, as the table groups them.
#pragma once

#include "kernels/table.h"

namespace redco::kernels {

void add_required_kernels(Kernels& table);
void add_image_and_expert_kernels(Kernels& table);
void add_fused_kernels(Kernels& table);

}  // namespace redco::kernels
