// How the dims of an op's operands align. Hidden dims align from the left, visible ones from the right. A
// dim that is missing, or of one element, is repeated. The last `trailing` dims of an operand (the matrices
// of a product) take no part.
#pragma once

#include <span>

#include "tensor/tensor.h"

namespace redco {

// The dims of the result.
struct Broadcast {
  Shape shape;
  int hidden = 0;
  int size() const { return static_cast<int>(shape.size()); }
};
// trailing: per operand; empty: none of any. Shapes that don't match are an error.
Broadcast broadcast_shapes(const char* op, const Tensors& operands, std::span<const int> trailing = {});

// The dim of an operand with `rank` dims, `hidden` of them hidden, that becomes dim D of a result with
// result_rank and result_hidden; -1: none.
inline int aligned_dim(int D, int result_rank, int result_hidden, int rank, int hidden) {
  if (D < result_hidden) return D < hidden ? D : -1;
  const int d = D - (result_rank - rank);
  return d >= hidden ? d : -1;
}
// The operand's dim that becomes dim D of the result and is not repeated; -1: none.
int own_dim(const Tensor& t, const Broadcast& b, int D, int trailing = 0);
// The dim of the result that dim d of the operand becomes.
inline int result_dim(const Tensor& t, const Broadcast& b, int d, int trailing = 0) {
  return d < t.hidden() ? d : d + b.size() - (t.rank() - trailing);
}
// The operand as a kernel reads it: a strided view with the dims of the result, of which `y` is the local
// block, followed by its own trailing dims.
View broadcast_view(const Tensor& t, const Broadcast& b, const Tensor& y, int trailing = 0);

}  // namespace redco
