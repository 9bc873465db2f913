#include "optim/clip.h"

#include <array>
#include <cmath>

#include "comm/group.h"
#include "kernels/square_sum.h"
#include "tensor/collectives.h"
#include "tensor/context.h"
#include "tensor/transfer.h"

namespace redco {

double gradient_norm(const std::vector<Tensor>& grads) {
  Context& c = Context::current();
  Scope scope("norm");
  const Mesh& mesh = c.mesh();
  std::array<bool, kMaxAxes> apart{};  // the ranks of the axis hold different elements
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    for (Axis a : mesh.axes())
      apart[a.index()] |= mesh.role(a) == AxisRole::model || g.layout()[a].is_sharded();
  }
  Views parts;
  parts.reserve(grads.size());
  i64 n = 0;
  for (const Tensor& g : grads) {
    if (!g.defined()) continue;
    bool mine = true;  // of equal copies, the first one counts
    for (Axis a : mesh.axes())
      if (apart[a.index()] && !g.layout()[a].is_sharded()) mine = mine && c.coord().at(a) == 0;
    if (!mine) continue;
    parts.push_back(g);
    n += g.local_numel();
  }
  const Tensor words({SquareSum::kWords}, DType::f64, {}),
      room({c.queue().kernels().sum_squares_workspace(n)}, DType::f64, {});
  c.run(&Kernels::sum_squares, parts, words, room);
  std::array<double, SquareSum::kWords> sum{};
  copy_to_host<double>(words, 0, sum);
  for (Axis a : mesh.axes()) {
    if (!apart[a.index()] || mesh.size(a) == 1) continue;
    c.account(Collective::all_reduce, a, sizeof sum);
    c.group(a).all_reduce<double>(sum.data(), SquareSum::kWords);
    SquareSum::normalize(sum);
  }
  return std::sqrt(SquareSum::value(sum));
}

double clip_factor(std::optional<double> most, double norm) {
  return most && norm > *most ? *most / (norm + 1e-6) : 1;
}

}  // namespace redco
