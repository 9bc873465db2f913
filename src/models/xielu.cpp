#include "models/xielu.h"

#include <cmath>

#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/select.h"
#include "ops/shape.h"

namespace redco {

void declare_xielu(SpecBuilder& b, const std::string& prefix) {
  constexpr double kBeta = 0.5, kSlope = 0.8;
  const auto constant = [](double v) { return Init{.kind = Init::Kind::constant, .std = v}; };
  const auto inverse_softplus = [](double v) { return std::log(std::expm1(v)); };
  b.add(prefix + ".alpha_p", {1}, ParamKind::other, constant(inverse_softplus(kSlope))).precise = true;
  b.add(prefix + ".alpha_n", {1}, ParamKind::other, constant(inverse_softplus(kSlope - kBeta))).precise =
      true;
  for (const auto& [name, value] : {std::pair(".beta", kBeta), std::pair(".eps", -1e-6)}) {
    ParamSpec& spec = b.add(prefix + name, {1}, ParamKind::other, constant(value));
    spec.stored.shape = {};
    spec.buffer = spec.precise = true;
  }
}

Tensor xielu(const ParamTree& p, const std::string& prefix, const Tensor& given) {
  const Tensor x = to_sum_type(given), beta = p[prefix + ".beta"];
  const Tensor a = softplus(p[prefix + ".alpha_p"]), n = beta + softplus(p[prefix + ".alpha_n"]);
  const Tensor below = add_scalar(exp(minimum(x, p[prefix + ".eps"])), -1) - x;
  return beta * x + where(compare(Binary::lt, full({}, 0, x.dtype()), x), a * square(x), n * below);
}

}  // namespace redco
