#include <array>

#include "ops/broadcast.h"
#include "ops/dispatch.h"
#include "ops/linear.h"
#include "ops/reduce.h"

namespace redco {

namespace {

// The batch dims of matmul's operands: all but those of the matrices.
Broadcast batch_dims(const Tensor& a, const Tensor& b) {
  constexpr std::array<int, 2> kMatrices = {2, 2};
  return broadcast_shapes("matmul", {a, b}, kMatrices);
}

// Where the stored operands of matmul have the dims i, k and k, j.
struct MatrixDims {
  int ai, ak, bk, bj;
};
MatrixDims matrix_dims(const Tensor& a, const Tensor& b, bool trans_a, bool trans_b) {
  const int ra = a.rank(), rb = b.rank();
  return {trans_a ? ra - 1 : ra - 2, trans_a ? ra - 2 : ra - 1, trans_b ? rb - 1 : rb - 2,
          trans_b ? rb - 2 : rb - 1};
}

// Attributes: trans_a, trans_b.
void matmul_strategies(OpCall::Strategies& s) {
  const Tensor &a = s.input(0), &b = s.input(1);
  const auto [ai, ak, bk, bj] = matrix_dims(a, b, s.attribute(0) != 0, s.attribute(1) != 0);
  const Broadcast bd = batch_dims(a, b);
  const int batch = bd.size();
  const Placement p = s.in(0), q = s.in(1);
  const Placement R = Placement::replicated(), P = Placement::partial();
  s.all_replicated();
  if (p.is_sharded(ai)) s.add({p, R}, {Placement::sharded(batch, p.unit)});
  if (q.is_sharded(bj)) s.add({R, q}, {Placement::sharded(batch + 1, q.unit)});
  if (p.is_sharded(ak)) s.add({p, Placement::sharded(bk, p.unit)}, {P});
  if (q.is_sharded(bk)) s.add({Placement::sharded(ak, q.unit), q}, {P});
  for (int D = 0; D < batch; ++D) {
    const int da = own_dim(a, bd, D, 2), db = own_dim(b, bd, D, 2);
    const auto cut = [&](int d, i64 unit) { return d >= 0 ? Placement::sharded(d, unit) : R; };
    if (da >= 0 && p.is_sharded(da)) s.add({p, cut(db, p.unit)}, {Placement::sharded(D, p.unit)});
    if (db >= 0 && q.is_sharded(db)) s.add({cut(da, q.unit), q}, {Placement::sharded(D, q.unit)});
  }
  if (p.is_partial()) s.add({P, R}, {P});
  if (q.is_partial()) s.add({R, P}, {P});
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, bool trans_a, bool trans_b) {
  REDCO_CHECK(a.visible() >= 2 && b.visible() >= 2, "[matmul] shapes do not match: {} and {}", describe(a),
              describe(b));
  const auto [ai, ak, bk, bj] = matrix_dims(a, b, trans_a, trans_b);
  REDCO_CHECK(a.shape()[ak] == b.shape()[bk], "[matmul] shapes do not match: {} and {}", describe(a),
              describe(b));
  const Broadcast bd = batch_dims(a, b);
  Shape shape = bd.shape;
  shape.push_back(a.shape()[ai]);
  shape.push_back(b.shape()[bj]);
  OpCall op("matmul", {a, b});
  op.choose({numel(shape)}, matmul_strategies, {.attributes = {trans_a, trans_b}});
  Tensor y = op.output(shape, a.dtype(), bd.hidden);
  op.flops(2.0 * y.local_numel() * op.in(0).local()[ak]);
  op.run(&Kernels::matmul, broadcast_view(op.in(0), bd, y, 2), trans_a, broadcast_view(op.in(1), bd, y, 2),
         trans_b, y);
  op.record({a, b}, [trans_a, trans_b, sa = a.shape(), ha = a.hidden(), sb = b.shape(),
                     hb = b.hidden()](const Vjp& v) {
    Tensors d(2);
    const Tensor g = v.g(), a = v.saved(0), b = v.saved(1);
    // y = A B: dA = g B^T, dB = A^T g, each stored like its operand.
    if (v.needs(0))
      d[0] = sum_to(trans_a ? matmul(b, g, trans_b, true) : matmul(g, b, false, !trans_b), sa, ha);
    if (v.needs(1))
      d[1] = sum_to(trans_b ? matmul(g, a, true, trans_a) : matmul(a, g, !trans_a, false), sb, hb);
    return d;
  });
  return y;
}

}  // namespace redco
