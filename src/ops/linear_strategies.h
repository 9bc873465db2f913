// The strategies of products with several weights, and the order of their inputs (not part of the public
// headers). Legend: R rows (all leading dims of x), K inputs, N_i outputs of weight i, r the rank of a
// low-rank update.
#pragma once

#include "ops/dispatch.h"

namespace redco {

// partial: a Partial operand is never reduced, whatever it costs (linear_partial)
enum class Sums : std::uint8_t { cheapest, partial };

// Products with n weights, m of which have a low-rank update.
struct ProductCounts {
  int n = 0, m = 0;
};

// y_i[R, N_i] = x[R, K] w_i^T + bias_i + u_k b_k^T, with u_k[R, r] = x a_k^T: inputs and outputs of the op.
struct ProductInputs : ProductCounts {
  static constexpr int x = 0;
  int w(int i) const { return 1 + i; }
  int bias(int i) const { return 1 + n + i; }
  int a(int k) const { return 1 + 2 * n + k; }
  int b(int k) const { return 1 + 2 * n + m + k; }
  int size() const { return 1 + 2 * n + 2 * m; }
  int y(int i) const { return i; }
  int u(int k) const { return n + k; }
};

// What its vjp keeps.
struct ProductSaved : ProductCounts {
  static constexpr int x = 0;
  int w(int i) const { return 1 + i; }
  int a(int k) const { return 1 + n + k; }
  int b(int k) const { return 1 + n + m + k; }
  int u(int k) const { return 1 + n + 2 * m + k; }
};

// dx[R, K] = the sum over i of g_i[R, N_i] w_i, and over k of du_k[R, r] a_k.
struct InputGradientInputs : ProductCounts {
  int g(int i) const { return i; }
  int w(int i) const { return n + i; }
  int du(int k) const { return 2 * n + k; }
  int a(int k) const { return 2 * n + m + k; }
};

// dw_i[N_i, K] = g_i[R, N_i]^T x[R, K].
struct WeightGradientInputs {
  static constexpr int x = 0;
  int g(int i) const { return 1 + i; }
};

// The attributes of the three ops are Sums, n and m; linear has a fourth one: bit i is set if weight i has an
// update. The weights are stationary, and have equal kinds of placements.
void linear_strategies(OpCall::Strategies& s);
void input_gradient_strategies(OpCall::Strategies& s);
void weight_gradient_strategies(OpCall::Strategies& s);

}  // namespace redco
