// Whether more of a metric is better.
#pragma once

#include <optional>
#include <string>

namespace redco {

// By the parts of the metric's name, as in loss_actor, eval_accuracy or rouge2_f1: more is better for
// accuracy, bleu, f1, rougeL, ..., less for loss, perplexity, wer, mse, ... nullopt: the name doesn't tell,
// or its parts contradict each other.
std::optional<bool> more_is_better(const std::string& metric);

}  // namespace redco
