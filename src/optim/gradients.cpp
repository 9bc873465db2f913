#include "optim/gradients.h"

#include <algorithm>

#include "autograd/grad.h"
#include "base/error.h"
#include "ops/create.h"
#include "ops/dispatch.h"
#include "ops/redistribute.h"
#include "shard/state_dim.h"
#include "tensor/collectives.h"

namespace redco {

namespace {

// The number of elements on this rank where an op uses the parameter.
i64 used_numel(const Tensor& p) {
  const Context& c = Context::current();
  return numel(local_shape(p.shape(), p.used_layout(), c.mesh(), c.coord()));
}

}  // namespace

GradientBuckets::GradientBuckets(const ParamTree& params, StateSharding sharding, i64 bucket_elements)
    : params_(params), sharding_(sharding), bucket_elements_(bucket_elements), places_(params.size()) {
  for (size_t i = 0; i < params.size(); ++i)
    if (params.specs()[i].trained()) trained_ += used_numel(params.values()[i]);
  unplaced_ = trained_;
}

void GradientBuckets::begin(const ParamTree& watched, bool last) {
  if (reduces_each()) reduce_all();
  leaves_.clear();
  leaves_.reserve(watched.size());
  for (size_t i = 0; i < watched.size(); ++i)
    if (const auto& node = watched.values()[i].node()) leaves_.emplace_back(node.get(), i);
  std::ranges::sort(leaves_);
  for (Place& p : places_) p.complete = false;
  last_ = last;
}

GradientBuckets::Place* GradientBuckets::place_of(const Node* leaf) {
  const auto at = std::ranges::lower_bound(leaves_, leaf, {}, &std::pair<const Node*, size_t>::first);
  return at == leaves_.end() || at->first != leaf ? nullptr : &places_[at->second];
}

// A gradient is added without redistribution if it has the placement of the sum so far. The first part may
// have any placement, but that of its parameter where that is Sharded on a model axis. On a data axis it may
// be anything but Sharded in another way.
bool GradientBuckets::fits(const Place& p, const Layout& layout) const {
  if (p.filled) return same_bytes_in(layout, p.sum.layout());
  const Layout& of = param_of(p).layout();
  const Mesh& mesh = Context::current().mesh();
  for (Axis a : mesh.axes()) {
    const bool free = mesh.role(a) == AxisRole::data && !layout[a].is_sharded();
    if (mesh.size(a) > 1 && of[a].is_sharded() && !(layout[a] == of[a]) && !free) return false;
  }
  return true;
}

// The place goes to the last bucket of its kind, or to a new one.
void GradientBuckets::make_place(Place& p, const Layout& layout) {
  const Tensor& param = param_of(p);
  const Context& c = Context::current();
  u32 axes = 0;
  for (Axis a : c.mesh().axes())
    if (c.mesh().size(a) > 1 && layout[a].is_partial()) axes |= 1u << a.index();
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
    if (p.bucket < 0 || !p.filled || !same_bytes_in(p.sum.layout(), value.layout())) {
      if (p.bucket >= 0) std::erase(buckets_[p.bucket].members, index_of(p));
      make_place(p, value.layout());
    }
    Context::current().run(&Kernels::copy, value, p.sum);
  }
  p.filled = p.reached = true;
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
  p->complete = last_ || reduces_each();
  reduce_if_complete(buckets_[p->bucket]);
}

void GradientBuckets::reduce_if_complete(Bucket& b) {
  if (!b.full || b.started) return;
  for (size_t i : b.members)
    if (!places_[i].complete) return;
  reduce(b);
}

void GradientBuckets::reduce(Bucket& b) {
  const Restore<const char*> phase(Context::current().phase, "step");
  const Scope scope("gradients");
  // What is sharded is gone when it is reduced, so there are never more than two such buckets.
  if (sharding_ != StateSharding::none)
    for (Bucket& other : buckets_)
      if (other.started) complete_reduction(other);
  b.started = true;
  b.left = b.axes;
  start_next(b);
}

// Starts the reduction over the next axis. Model axes, and data axes without sharding: an all-reduce of the
// bucket. Sharded: every rank gets the sum of its part of each gradient.
void GradientBuckets::start_next(Bucket& b) {
  Context& c = Context::current();
  for (Axis a : c.mesh().axes()) {
    const u32 bit = 1u << a.index();
    if (!(b.left & bit)) continue;
    b.left &= ~bit;
    if (c.mesh().role(a) == AxisRole::data && sharding_ != StateSharding::none) {
      if (c.mesh().size(a) > 1 && start_scatter(b, a)) return;
      continue;
    }
    b.summed |= bit;
    if (c.mesh().size(a) == 1) continue;
    const View data = b.flat.view().flat(0, b.used);
    c.account(Collective::all_reduce, a, data.bytes());
    b.pending = Collectives(a).start_all_reduce(data);
    return;
  }
}

namespace {

int part_dim(const Tensor& t) { return state_dim(t.layout(), t.shape(), Context::current().mesh()); }

Layout with_parts_on(const Tensor& t, Axis a) {
  Layout l = t.layout();
  l[a] = Placement::sharded(part_dim(t));
  return l;
}

}  // namespace

// One reduce-scatter of all gradients of the bucket. False: a later axis cuts the same dim, so they are
// reduced one by one (complete_reduction).
bool GradientBuckets::start_scatter(Bucket& b, Axis a) {
  Context& c = Context::current();
  const Mesh& mesh = c.mesh();
  i64 total = 0, bytes = 0;
  for (size_t i : b.members) {
    const Tensor& t = places_[i].sum;
    for (Axis later : mesh.axes())
      if (later.index() > a.index() && t.rank() > 0 && t.layout()[later].is_sharded(part_dim(t)))
        return false;
    if (t.rank() == 0) continue;
    total += numel(local_shape(t.shape(), with_parts_on(t, a), mesh, c.coord()));
    bytes += t.local_bytes();
  }
  b.parts = Tensor({total}, DType::f32, {});
  b.scattered = a;
  std::vector<Views> send(mesh.size(a));
  Views receive;
  i64 at = 0;
  for (size_t i : b.members) {
    const Tensor& t = places_[i].sum;
    if (t.rank() == 0) continue;
    const int dim = part_dim(t);
    for (int r = 0; r < mesh.size(a); ++r) {
      const Range of_rank = shard_range(t.local()[dim], 1, mesh.size(a), r);
      const i64 first = elements_before(t.local(), dim, of_rank.begin);
      send[r].push_back(t.view().flat(first, elements_before(t.local(), dim, of_rank.end) - first));
    }
    const i64 mine = send[c.coord().at(a)].back().numel();
    receive.push_back(b.parts.view().flat(at, mine));
    at += mine;
  }
  c.account(Collective::reduce_scatter, a, bytes);
  b.pending = Collectives(a).start_reduce_scatter(send, receive);
  return true;
}

// The parts replace the bucket.
void GradientBuckets::adopt_parts(Bucket& b) {
  if (!b.parts.defined()) return;
  i64 at = 0;
  for (size_t i : b.members) {
    Tensor& t = places_[i].sum;
    if (t.rank() == 0) continue;
    t = Tensor::within(b.parts, at, t.shape(), with_parts_on(t, b.scattered));
    at += t.local_numel();
  }
  b.used = at;
  b.flat = std::move(b.parts);
  b.parts = {};
}

// Waits for the reduction. The sums become those of their parameters.
void GradientBuckets::complete_reduction(Bucket& b) {
  const NoGrad off;
  Context& c = Context::current();
  const Restore<const char*> phase(c.phase, "step");
  const Scope scope("gradients");
  while (b.pending) {
    b.pending.wait();
    adopt_parts(b);
    start_next(b);
  }
  b.flat = {};  // the members hold the memory
  for (size_t i : b.members) {
    Place& p = places_[i];
    Layout l = p.sum.layout();
    for (Axis a : c.mesh().axes())
      if (b.summed >> a.index() & 1) l[a] = Placement::replicated();
    const Tensor part =
        redistribute(Tensor::view(p.sum, p.sum.shape(), l, 0), state_layout(param_of(p), sharding_));
    p.sum = {};
    p.filled = false;
    p.bucket = -1;
    if (p.reduced.defined()) {
      c.account("accumulate", part.local_numel(), part.local_bytes());
      c.run(&Kernels::axpy, 1, part, p.reduced);
    } else {
      p.reduced = part;
    }
  }
  b.members.clear();
}

void GradientBuckets::reduce_all() {
  for (Bucket& b : buckets_)
    if (!b.started) reduce(b);
  for (Bucket& b : buckets_) complete_reduction(b);
  buckets_.clear();
  unplaced_ = trained_;
}

std::vector<Tensor> GradientBuckets::finish() {
  reduce_all();
  std::vector<Tensor> out;
  out.reserve(places_.size());
  unreached_.clear();
  for (Place& p : places_) {
    if (p.reduced.defined() && !p.reached) unreached_.push_back(index_of(p));
    out.push_back(std::move(p.reduced));
  }
  places_.assign(places_.size(), {});
  return out;
}

std::vector<Tensor> reduced_gradients(const Tensor& loss, const ParamTree& watched, const ParamTree& params,
                                      StateSharding sharding) {
  GradientBuckets buckets(params, sharding);
  buckets.begin(watched, true);
  std::vector<Tensor> leaves;
  for (const Tensor& t : watched.values())
    if (t.node()) leaves.push_back(t);
  grad(loss, leaves, {.sink = &buckets});
  std::vector<Tensor> out = buckets.finish();
  for (size_t i = 0; i < out.size(); ++i)
    if (const Tensor& p = params.values()[i]; !out[i].defined())
      out[i] = zeros(p.shape(), p.dtype(), state_layout(p, sharding));
  return out;
}

}  // namespace redco
