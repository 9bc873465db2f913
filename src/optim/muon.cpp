#include "optim/muon.h"

#include <algorithm>
#include <cmath>

#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "shard/roles.h"

namespace redco {

namespace {

double factor_of(MuonScale scale, double out, double in) {
  switch (scale) {
    case MuonScale::adamw:
      return 0.2 * std::sqrt(std::max(out, in));
    case MuonScale::original:
      return std::sqrt(std::max(1.0, out / in));
    case MuonScale::spectral:
      return std::sqrt(out / in);
  }
  return 1;
}

class MuonRule : public UpdateRule {
 public:
  explicit MuonRule(const MuonSettings& settings) : settings_(settings) {}
  std::vector<std::string> state() const override { return {"momentum_buffer"}; }
  Update update(const Tensor& p, const Tensor& g, const Tensors& state,
                const UpdateContext& c) const override {
    const double kept = settings_.momentum;
    const Tensor m = kept * state[0] + (1 - kept) * g;
    const Tensor o = orthogonalized(settings_.nesterov ? kept * m + (1 - kept) * g : m, settings_.iterations);
    const auto out = static_cast<double>(p.size(-2)), in = static_cast<double>(p.size(-1));
    const double factor = factor_of(settings_.scale, out, in);
    return {scale(p, 1 - c.learning_rate * c.weight_decay) - scale(o, c.learning_rate * factor), {m}};
  }

 private:
  MuonSettings settings_;
};

RuleSettings rule_of(const MuonSettings& s) {
  return {.name = "muon",
          .origin = "",
          .rule = std::make_shared<MuonRule>(s),
          .weight_decay = s.others.weight_decay,
          .decay_norms_and_biases = s.others.decay_norms_and_biases};
}

// `members` that are hidden matrices, or that are not.
std::vector<bool> members_that(bool are, const std::vector<bool>& hidden, const std::vector<bool>& members) {
  std::vector<bool> out(hidden.size());
  for (std::size_t i = 0; i < hidden.size(); ++i)
    out[i] = (members.empty() || members[i]) && hidden[i] == are;
  return out;
}

bool cut_over_model(const Tensor& x, int dim) {
  const Mesh& mesh = Context::current().mesh();
  for (Axis a : mesh.axes())
    if (mesh.role(a) == AxisRole::model && mesh.size(a) > 1 && x.layout()[a].is_sharded(dim)) return true;
  return false;
}

}  // namespace

std::vector<bool> hidden_matrices(const ParamTree& params) {
  const std::vector<ParamSpec>& specs = params.specs();
  const Sharding roles = shard_specs(specs, 1).sharding;
  std::vector<bool> out(specs.size());
  for (std::size_t i = 0; i < specs.size(); ++i)
    out[i] = specs[i].kind == ParamKind::linear && specs[i].shape.size() >= 2 &&
             roles.rules[i].rule != rule::kHead;
  return out;
}

// The coefficients of Jordan et al. 2024. With B = b A + c A A and A = X X^T, an iteration is a X + B X.
Tensor orthogonalized(const Tensor& x, i64 iterations) {
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315, kSmallest = 1e-7;
  const i64 rows = x.size(-2), columns = x.size(-1);
  const bool rows_cut = cut_over_model(x, x.axis(-2)), columns_cut = cut_over_model(x, x.axis(-1));
  // The products of the rows, or of the columns, whichever are fewer. Cut rows make those of columns cheaper.
  const bool of_columns = rows > columns || (rows == columns && rows_cut);
  Tensor y = x;
  if (of_columns ? columns_cut : rows_cut) y = to_replicated(x);
  y = y / maximum(sqrt(sum(square(y), {-2, -1}, true)), full({}, kSmallest));
  for (i64 i = 0; i < iterations; ++i) {
    // Reduced here, once: both terms below need it.
    const Tensor products =
        without_partials(of_columns ? matmul(y, y, true, false) : matmul(y, y, false, true));
    const Tensor factor = b * products + c * matmul(products, products);
    y = a * y + (of_columns ? matmul(y, factor) : matmul(factor, y));
  }
  return y;
}

Muon::Muon(const MuonSettings& settings, const ParamTree& params, StateSharding sharding,
           const std::vector<bool>& members)
    : Muon(settings, params, sharding, members, hidden_matrices(params)) {}

Muon::Muon(const MuonSettings& settings, const ParamTree& params, StateSharding sharding,
           const std::vector<bool>& members, const std::vector<bool>& hidden)
    : Optimizer(params, sharding, members),
      matrices_(rule_of(settings), params, sharding, members_that(true, hidden, members)),
      others_(settings.others, params, sharding, members_that(false, hidden, members)) {}

void Muon::update(ParamTree& params, const std::vector<Tensor>& grads, double learning_rate, double scale,
                  const std::vector<bool>& selected) {
  for (Optimizer* of : {static_cast<Optimizer*>(&matrices_), static_cast<Optimizer*>(&others_)}) {
    of->updates() = updates();
    of->update(params, grads, learning_rate, scale, selected);
    updates() = of->updates();
  }
}

std::vector<Optimizer::State> Muon::state() const {
  std::vector<State> out = matrices_.state();
  for (State& s : others_.state()) out.push_back(std::move(s));
  return out;
}

}  // namespace redco
