#include "optim/gradients.h"

#include <algorithm>
#include <cmath>

#include "autograd/grad.h"
#include "base/error.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/redistribute.h"
#include "tensor/collectives.h"
#include "tensor/transfer.h"

namespace redco {

GradientBuckets::GradientBuckets(const ParamTree& params, i64 bucket_elements)
    : params_(params), bucket_elements_(bucket_elements), places_(params.size()) {
  for (size_t i = 0; i < params.size(); ++i)
    if (params.specs()[i].trained()) trained_ += params.values()[i].local_numel();
  unplaced_ = trained_;
}

void GradientBuckets::begin(const ParamTree& watched, bool last) {
  leaves_.clear();
  for (size_t i = 0; i < watched.size(); ++i)
    if (const auto& node = watched.values()[i].node()) leaves_[node.get()] = i;
  for (Place& p : places_) p.complete = false;
  last_ = last;
}

GradientBuckets::Place* GradientBuckets::place_of(const Node* leaf) {
  const auto at = leaves_.find(leaf);
  return at == leaves_.end() ? nullptr : &places_[at->second];
}

// A gradient is added as it is if it has the placement of the sum so far. The first part may have any
// placement, but that of its parameter where that is Sharded.
bool GradientBuckets::fits(const Place& p, const Layout& layout) const {
  if (p.filled) return layout == p.sum.layout();
  const Layout& of = param_of(p).layout();
  for (Axis a : Context::current().mesh().axes())
    if (of[a].is_sharded() && !(layout[a] == of[a])) return false;
  return true;
}

// The place goes to the last bucket of its kind, or to a new one.
void GradientBuckets::make_place(Place& p, const Layout& layout) {
  const Tensor& param = param_of(p);
  const Context& c = Context::current();
  u32 axes = 0;
  for (Axis a : c.mesh().axes())
    if (layout[a].is_partial()) axes |= 1u << a.index();
  const i64 n = numel(local_shape(param.shape(), layout, c.mesh(), c.coord()));
  int at = static_cast<int>(buckets_.size()) - 1;
  while (at >= 0 && (buckets_[at].axes != axes || buckets_[at].full)) --at;
  if (at >= 0 && buckets_[at].used + n > buckets_[at].flat.local_numel()) {
    buckets_[at].full = true;
    reduce_if_complete(buckets_[at]);
    at = -1;
  }
  if (at < 0) {
    at = static_cast<int>(buckets_.size());
    const i64 size = std::max(n, std::min(bucket_elements_, unplaced_));
    buckets_.push_back({.flat = Tensor({size}, DType::f32, {}), .axes = axes, .members = {}});
  }
  Bucket& b = buckets_[at];
  unplaced_ = std::max<i64>(0, unplaced_ - n);
  p.bucket = at;
  p.sum = Tensor::within(b.flat, b.used, param.shape(), layout);
  b.used += n;
  b.members.push_back(index_of(p));
}

Tensor GradientBuckets::room(const Node* leaf, const Shape& shape, DType dtype, const Layout& layout) {
  Place* const p = place_of(leaf);
  if (!p || p->bucket >= 0 || dtype != DType::f32 || !fits(*p, layout)) return {};
  REDCO_CHECK(shape == param_of(*p).shape(), "a gradient {}", to_string(shape));
  make_place(*p, layout);
  return p->sum.detached();
}

// Makes `value` the sum.
void GradientBuckets::set(Place& p, const Tensor& value) {
  REDCO_CHECK(value.dtype() == DType::f32, "gradient {}", describe(value));
  if (p.bucket >= 0 && !p.filled && p.sum.same_bytes(value)) {
    p.sum = p.sum.with_storage_of(value);
  } else {
    // A place that has an op's result, or another size, is left to it.
    if (p.bucket < 0 || !p.filled || !(p.sum.layout() == value.layout())) {
      if (p.bucket >= 0) std::erase(buckets_[p.bucket].members, index_of(p));
      make_place(p, value.layout());
    }
    Context::current().run(&Kernels::copy, value, p.sum);
  }
  p.filled = true;
}

bool GradientBuckets::add(const Node* leaf, const Tensor& part) {
  Place* const p = place_of(leaf);
  REDCO_CHECK(p && part.shape() == param_of(*p).shape(), "gradient {} of another tensor", describe(part));
  if (!fits(*p, part.layout())) return false;
  if (!p->filled) {
    set(*p, part);
    return true;
  }
  Context& c = Context::current();
  c.account("accumulate", part.local_numel(), part.local_bytes());
  c.run(&Kernels::axpy, 1, part, p->sum);
  return true;
}

void GradientBuckets::complete(const Node* leaf, SmallVector<Tensor, 2>& rest) {
  Place* const p = place_of(leaf);
  REDCO_CHECK(p, "the gradient of a tensor that is no parameter");
  if (!rest.empty()) {
    if (p->filled) rest.insert(rest.begin(), 1, p->sum.detached());
    set(*p, sum_of_parts(rest, leaf->outputs[0]));
  } else if (!p->filled) {
    if (p->bucket < 0) make_place(*p, param_of(*p).layout());
    Context::current().run(&Kernels::fill, p->sum, 0);
    p->filled = true;
  }
  p->complete = last_;
  reduce_if_complete(buckets_[p->bucket]);
}

void GradientBuckets::reduce_if_complete(Bucket& b) {
  if (!b.full || !last_ || b.reduced) return;
  for (size_t i : b.members)
    if (!places_[i].complete) return;
  reduce(b);
}

void GradientBuckets::reduce(Bucket& b) {
  const Restore<const char*> phase(Context::current().phase, "step");
  const Scope scope("gradients");
  b.reduced = true;
  b.left = b.axes;
  start_next(b);
}

// Starts the all-reduce over the next axis.
void GradientBuckets::start_next(Bucket& b) {
  Context& c = Context::current();
  const View data = b.flat.view().flat(0, b.used);
  for (Axis a : c.mesh().axes()) {
    if (!(b.left >> a.index() & 1)) continue;
    b.left &= ~(1u << a.index());
    if (c.mesh().size(a) == 1) continue;
    c.account(Collective::all_reduce, a, data.bytes());
    b.pending = Collectives(a).start_all_reduce(data);
    return;
  }
}

std::vector<Tensor> GradientBuckets::finish() {
  NoGrad off;
  for (Bucket& b : buckets_)
    if (!b.reduced) reduce(b);
  for (Bucket& b : buckets_) {
    const Scope scope("gradients");
    while (b.pending) {
      b.pending.wait();
      start_next(b);
    }
    for (size_t i : b.members) {
      Tensor& sum = places_[i].sum;
      sum = Tensor::view(sum, sum.shape(), sum.layout().reduced(), 0);
    }
  }
  std::vector<Tensor> out(places_.size());
  const Scope scope("gradients");
  for (size_t i = 0; i < places_.size(); ++i)
    if (places_[i].filled) out[i] = redistribute(places_[i].sum, params_.values()[i].layout());
  unplaced_ = trained_;
  places_.assign(places_.size(), {});
  buckets_.clear();
  return out;
}

std::vector<Tensor> reduced_gradients(const Tensor& loss, const ParamTree& watched, const ParamTree& params) {
  GradientBuckets buckets(params);
  buckets.begin(watched, true);
  std::vector<Tensor> leaves;
  for (const Tensor& t : watched.values())
    if (t.node()) leaves.push_back(t);
  grad(loss, leaves, {.sink = &buckets});
  std::vector<Tensor> out = buckets.finish();
  for (size_t i = 0; i < out.size(); ++i)
    if (!out[i].defined()) out[i] = zeros_like(params.values()[i]);
  return out;
}

double gradient_norm(const std::vector<Tensor>& grads) {
  Context& c = Context::current();
  Scope scope("norm");
  const i64 n = static_cast<i64>(grads.size());
  i64 largest = 0;
  for (const Tensor& g : grads)
    if (g.defined()) largest = std::max(largest, g.local_numel());
  const Kernels& kernels = c.queue().kernels();
  const Tensor squares({n}, DType::f64, {}), room({kernels.sum_squares_workspace(largest)}, DType::f64, {});
  c.run(&Kernels::fill, squares, 0);
  for (i64 i = 0; i < n; ++i) {
    const Tensor& g = grads[i];
    if (!g.defined()) continue;
    bool mine = true;  // of the copies on a model axis, the first one counts
    for (Axis a : c.mesh().axes())
      if (c.mesh().role(a) == AxisRole::model && !g.layout()[a].is_sharded())
        mine = mine && c.coord().at(a) == 0;
    if (mine) c.run(&Kernels::sum_squares, g, squares.view().flat(i, 1), room);
  }
  double sum = 0;
  for (const double s : host_copy<double>(squares)) sum += s;
  for (Axis a : c.mesh().axes()) {
    if (c.mesh().role(a) != AxisRole::model || c.mesh().size(a) == 1) continue;
    c.account(Collective::all_reduce, a, sizeof sum);
    c.group(a).all_reduce<double>(&sum, 1);
  }
  return std::sqrt(sum);
}

}  // namespace redco
