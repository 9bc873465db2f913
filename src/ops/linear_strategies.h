// The strategies of products with several weights, and the order of their inputs (not part of the public
// headers). Legend: R rows (all leading dims of x), K inputs, N_i outputs of weight i.
#pragma once

#include "ops/dispatch.h"

namespace redco {

// partial: a Partial operand is never reduced, whatever it costs (linear_partial)
enum class Sums : std::uint8_t { cheapest, partial };

// y_i[R, N_i] = x[R, K] w_i^T + bias_i, for n weights: inputs and outputs of the op.
struct ProductInputs {
  int n = 0;
  static constexpr int x = 0;
  int w(int i) const { return 1 + i; }
  int bias(int i) const { return 1 + n + i; }
  int size() const { return 1 + 2 * n; }
  int y(int i) const { return i; }
};

// What its vjp keeps.
struct ProductSaved {
  static constexpr int x = 0;
  int w(int i) const { return 1 + i; }
};

// dx[R, K] = the sum over i of g_i[R, N_i] w_i.
struct InputGradientInputs {
  int n = 0;
  int g(int i) const { return i; }
  int w(int i) const { return n + i; }
};

// dw_i[N_i, K] = g_i[R, N_i]^T x[R, K].
struct WeightGradientInputs {
  static constexpr int x = 0;
  int g(int i) const { return 1 + i; }
};

// The attributes of the three ops are Sums and n. The weights are stationary, and have equal kinds of
// placements.
void linear_strategies(OpCall::Strategies& s);
void input_gradient_strategies(OpCall::Strategies& s);
void weight_gradient_strategies(OpCall::Strategies& s);

}  // namespace redco
