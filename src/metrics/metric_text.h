// The metrics of an evaluation on one line.
#pragma once

#include <map>
#include <string>

namespace redco {

// "accuracy 0.9123", separator, "loss 0.3210". A metric that equals another one by its definition is left out
// if both show the same number: f1_micro (accuracy), f1_macro (f1 of more than two classes), mse (the
// regression's loss).
std::string metrics_text(const std::map<std::string, double>& metrics, const std::string& separator);

}  // namespace redco
