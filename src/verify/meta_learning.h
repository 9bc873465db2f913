// The check of meta-gradients. Such a fixture has no model folder. It holds the parameters of a CNN
// (param.conv1.weight, ...), tasks (support_images, support_labels, query_images, query_labels), and two sets
// of results: exact ones (second_order.*), and those with constant inner gradients (first_order.*). Each set
// has the query loss after the inner steps (mean over tasks, and per task) and the gradient by parameter.
// fixture.json has inner_steps, inner_lr, and float32_vs_float64, the error of another float32 run.
#pragma once

#include "verify/verify.h"

namespace redco {

// Whether the request's folder is such a fixture.
bool is_meta_learning(const VerifyRequest& request);
VerifyReport verify_meta_learning(const VerifyRequest& request);

}  // namespace redco
