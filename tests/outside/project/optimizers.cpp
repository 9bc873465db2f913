// Optimizers and a metric of a plugin.
#include <cmath>
#include <stdexcept>

#include "redco.h"

using namespace redco;

// AdamW (Loshchilov & Hutter 2019) composed of ops: the twin of redco's.
struct AdamOfOps : UpdateRule {
  double beta1 = 0.9, beta2 = 0.999;
  void visit(SettingsVisitor& v) {
    v.field("beta1", beta1, "decay rate of the first moment").at_least(0).below(1);
    v.field("beta2", beta2, "decay rate of the second moment").at_least(0).below(1);
  }
  bool elementwise() const override { return true; }
  std::vector<std::string> state() const override { return {"first", "second"}; }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state,
                const UpdateContext& c) const override {
    const auto n = static_cast<double>(c.updates);
    const Tensor m = beta1 * state[0] + (1 - beta1) * g;
    const Tensor v = beta2 * state[1] + (1 - beta2) * square(g);
    const Tensor root = add_scalar(scale(sqrt(v), 1 / std::sqrt(1 - std::pow(beta2, n))), 1e-8);
    const Tensor kept = scale(p, 1 - c.learning_rate * c.weight_decay);
    return {kept - scale(m / root, c.learning_rate / (1 - std::pow(beta1, n))), {m, v}};
  }
};

// Lion (Chen et al. 2023): the sign of an average. Elementwise too, but gets whole parameters.
struct Lion : UpdateRule {
  std::vector<std::string> state() const override { return {"momentum"}; }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state,
                const UpdateContext& c) const override {
    const Tensor d = 0.9 * state[0] + 0.1 * g, zero = zeros_like(d);
    const Tensor sign = compare(Binary::lt, zero, d) - compare(Binary::lt, d, zero);
    return {p - c.learning_rate * (sign + c.weight_decay * p), {0.99 * state[0] + 0.01 * g}};
  }
};

// Of a matrix, the momentum with all singular values near 1 (as in Muon, Jordan et al. 2024); of others,
// momentum.
struct Orthogonal : UpdateRule {
  std::vector<std::string> state() const override { return {"momentum"}; }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state,
                const UpdateContext& c) const override {
    const Tensor m = 0.95 * state[0] + g;
    if (p.rank() != 2) return {p - c.learning_rate * m, {m}};
    Tensor x = m / add_scalar(sqrt(sum_all(square(m))), 1e-7);
    for (int i = 0; i < 5; ++i) {
      const Tensor a = matmul(x, x, false, true);  // x x^T
      x = 3.4445 * x + matmul(-4.7750 * a + 2.0315 * matmul(a, a), x);
    }
    return {p - c.learning_rate * x, {m}};
  }
};

struct WrongShape : UpdateRule {
  Update update(const Tensor& p, const Tensor&, const Tensors&, const UpdateContext&) const override {
    return {sum_all(p)};
  }
};

// Share of the predictions that are as long as their first reference.
double same_length(const std::vector<std::string>& predictions,
                   const std::vector<std::vector<std::string>>& references) {
  double n = 0;
  for (std::size_t i = 0; i < predictions.size(); ++i) n += predictions[i].size() == references[i][0].size();
  return n / static_cast<double>(predictions.size());
}

double fails(const std::vector<std::string>&, const std::vector<std::vector<std::string>>&) {
  throw std::runtime_error("no texts today");
}

REDCO_OPTIMIZER("adam_of_ops", AdamOfOps)
REDCO_OPTIMIZER("lion", Lion)
REDCO_OPTIMIZER("orthogonal", Orthogonal)
REDCO_OPTIMIZER("wrong_shape", WrongShape)
REDCO_METRIC("same_length", same_length)
REDCO_METRIC("fails", fails)
