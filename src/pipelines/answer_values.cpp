#include "pipelines/answer_values.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/create.h"

namespace redco {

std::vector<double> answer_values(const Tensor& outputs) {
  std::vector<double> values = to_values(outputs);
  const auto bad = std::ranges::find_if(values, [](double v) { return !std::isfinite(v); });
  if (bad != values.end())
    throw Error(ExitCode::non_finite,
                fmt::format("[predict] the model's outputs are not finite: {}. Check the weights", *bad));
  return values;
}

}  // namespace redco
