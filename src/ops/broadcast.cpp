#include "ops/broadcast.h"

#include <algorithm>

#include "base/error.h"

namespace redco {

Broadcast broadcast_shapes(const char* op, const Tensors& operands, std::span<const int> trailing) {
  const auto left_out = [&](std::size_t i) { return trailing.empty() ? 0 : trailing[i]; };
  Broadcast b;
  int visible = 0;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    REDCO_CHECK(operands[i].defined(), "[{}] operand {} is an undefined tensor", op, i + 1);
    REDCO_CHECK(operands[i].visible() >= left_out(i), "[{}] {}: expected at least {} dims", op,
                describe(operands[i]), left_out(i));
    b.hidden = std::max(b.hidden, operands[i].hidden());
    visible = std::max(visible, operands[i].visible() - left_out(i));
  }
  b.shape.assign(b.hidden + visible, 1);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    const Tensor& t = operands[i];
    for (int d = 0; d < t.rank() - left_out(i); ++d) {
      i64& size = b.shape[result_dim(t, b, d, left_out(i))];
      const i64 mine = t.shape()[d];
      if (mine == size || mine == 1) continue;
      REDCO_CHECK(size == 1, "[{}] shapes do not match: {} and {}", op, describe(operands[0]), describe(t));
      size = mine;
    }
  }
  return b;
}

int own_dim(const Tensor& t, const Broadcast& b, int D, int trailing) {
  const int d = aligned_dim(D, b.size(), b.hidden, t.rank() - trailing, t.hidden());
  return d >= 0 && t.shape()[d] == b.shape[D] ? d : -1;
}

View broadcast_view(const Tensor& t, const Broadcast& b, const Tensor& y, int trailing) {
  View v = t;
  if (!v.present) return v;
  const Strides own = row_major(v.shape);
  const int dims = t.rank() - trailing;
  Shape shape(y.local().begin(), y.local().begin() + b.size());
  v.strides.assign(b.size(), 0);
  for (int D = 0; D < b.size(); ++D)
    if (const int d = own_dim(t, b, D, trailing); d >= 0) v.strides[D] = own[d];
  for (int d = dims; d < t.rank(); ++d) {
    shape.push_back(v.shape[d]);
    v.strides.push_back(own[d]);
  }
  v.shape = std::move(shape);
  return v;
}

}  // namespace redco
