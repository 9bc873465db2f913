// verify's part about meta-gradients: a fixture without a model's folder, which holds a CNN's parameters
// (param.conv1.weight, ...), tasks (support_images, support_labels, query_images, query_labels), and, exact
// (second_order.*) and with the inner gradients as constants (first_order.*), the mean over tasks of the
// query loss after the inner steps, each task's own, and the gradient by parameter. fixture.json says
// inner_steps, inner_lr, and float32_vs_float64: how far another float32 run is.
#pragma once

#include "verify/verify.h"

namespace redco {

// Is the request's folder one?
bool is_meta_learning(const VerifyRequest& request);
VerifyReport verify_meta_learning(const VerifyRequest& request);

}  // namespace redco
