#include "tensor/tensor.h"

#include "base/error.h"
#include "base/pooled.h"
#include "tensor/node.h"

namespace redco {

Storage::Storage(std::shared_ptr<Arena> arena, i64 bytes)
    : arena_(std::move(arena)), offset_(arena_->allocate(bytes)), bytes_(bytes), data_(arena_->at(offset_)) {}
Storage::~Storage() { arena_->free(offset_, bytes_); }

std::shared_ptr<Tensor::Impl> Tensor::without_storage(const Shape& shape, DType dtype, const Layout& layout,
                                                      int hidden) {
  const Context& c = Context::current();
  auto impl = make_pooled<Impl>();
  impl->local = local_shape(shape, layout, c.mesh(), c.coord());
  impl->shape = shape;
  impl->layout = layout;
  impl->dtype = dtype;
  impl->hidden = hidden;
  return impl;
}

Tensor::Tensor(const Shape& shape, DType dtype, const Layout& layout, int hidden)
    : impl_(without_storage(shape, dtype, layout, hidden)) {
  impl_->storage = make_pooled<Storage>(Context::current().shared_arena(), local_bytes());
}

Tensor Tensor::view(const Tensor& of, const Shape& shape, const Layout& layout, int hidden) {
  Tensor t(without_storage(shape, of.dtype(), layout, hidden));
  t.impl_->storage = of.impl().storage;
  t.impl_->offset = of.impl().offset;
  REDCO_CHECK(t.local_numel() == of.local_numel() && t.local_stored() == of.local_stored(), "{} as {} {}",
              describe(of), to_string(t.shape()), to_string(layout, Context::current().mesh()));
  return t;
}

Tensor Tensor::within(const Tensor& of, i64 first, const Shape& shape, const Layout& layout) {
  Tensor t(without_storage(shape, of.dtype(), layout, 0));
  t.impl_->storage = of.impl().storage;
  t.impl_->offset = of.impl().offset + bytes_of(of.dtype(), first);
  REDCO_CHECK(first >= 0 && first + t.local_stored() <= of.local_stored(), "element {} of {} as {}", first,
              describe(of), to_string(t.shape()));
  return t;
}

Tensor::operator View() const {
  if (!impl_) return {};
  return {.data = impl_->storage->data().plus(impl_->offset),
          .dtype = impl_->dtype,
          .present = true,
          .shape = impl_->local,
          .strides = {}};
}

int Tensor::axis(int d) const {
  const int a = d < 0 ? rank() + d : hidden() + d;
  REDCO_CHECK(a >= hidden() && a < rank(), "an op got dim {} of {}; expected {} to {}", d, describe(*this),
              hidden() - rank(), visible() - 1);
  return a;
}

Range Tensor::range(int dim) const {
  const Context& c = Context::current();
  return local_range(shape(), layout(), c.mesh(), c.coord(), dim);
}

bool Tensor::is_first_copy() const {
  const Context& c = Context::current();
  for (Axis a : c.mesh().axes())
    if (layout()[a].is_replicated() && c.coord().at(a) != 0) return false;
  return true;
}

void Tensor::set_node(std::shared_ptr<Node> node, int output) const {
  impl().node = std::move(node);
  impl().node_output = output;
}

Tensor Tensor::detached() const {
  auto copy = make_pooled<Impl>(impl());
  copy->node = nullptr;
  copy->node_output = 0;
  return Tensor(std::move(copy));
}

Tensor Tensor::watched() const {
  Tensor t = detached();
  auto node = make_pooled<Node>();
  node->name = "leaf";
  node->sequence = Context::current().next_sequence();
  node->outputs.push_back({shape(), used_layout(), dtype(), hidden()});
  t.set_node(std::move(node), 0);
  return t;
}

Tensor Tensor::with_storage_of(const Tensor& other) const {
  auto copy = make_pooled<Impl>(impl());
  copy->layout = other.layout();
  copy->local = other.local();
  copy->storage = other.impl().storage;
  copy->offset = other.impl().offset;
  copy->gathered_on_use = false;
  return Tensor(std::move(copy));
}

Tensor Tensor::with_placement(Axis axis, const Placement& p) const {
  auto copy = make_pooled<Impl>(impl());
  copy->layout[axis] = p;
  copy->gathered_on_use = false;
  return Tensor(std::move(copy));
}

Tensor Tensor::gathered_on_use() const {
  auto copy = make_pooled<Impl>(impl());
  copy->gathered_on_use = true;
  return Tensor(std::move(copy));
}

Layout Tensor::used_layout() const {
  Layout l = layout();
  if (!is_gathered_on_use()) return l;
  const Mesh& mesh = Context::current().mesh();
  for (Axis a : mesh.axes())
    if (mesh.role(a) == AxisRole::data) l[a] = Placement::replicated();
  return l;
}

void Tensor::promote(const Tensor& reduced) const {
  impl().layout = reduced.layout();
  impl_->local = reduced.local();
  impl_->storage = reduced.impl_->storage;
  impl_->offset = reduced.impl_->offset;
}

Tensor Tensor::with_hidden(int hidden) const {
  if (hidden == this->hidden()) return *this;
  auto copy = make_pooled<Impl>(impl());
  copy->hidden = hidden;
  return Tensor(std::move(copy));
}

void Tensor::no_value() {
  throw BugError("a function got an undefined tensor, one that was never given a value");
}

void throw_not_float(DType t) {
  throw BugError(fmt::format("an arithmetic op got a tensor of type {}", name_of(t)));
}

std::string describe(const Tensor& t) {
  if (!t.defined()) return "undefined";
  return fmt::format("{} {} {}{}", name_of(t.dtype()), to_string(t.shape()),
                     to_string(t.layout(), Context::current().mesh()),
                     t.hidden() ? fmt::format(" hidden {}", t.hidden()) : "");
}

Tensor Vjp::saved(int i) const {
  const Node::Saved& s = node_->saved[i];
  if (s.own_output < 0) return s.tensor;
  Tensor t = s.tensor.detached();
  t.set_node(node_, s.own_output);
  return t;
}

GradientRoom Vjp::room(int input) const { return {sink_, node_->inputs[input].node.get()}; }

std::vector<RowFactors>* Vjp::factors(int input) const {
  if (!factors_) return nullptr;
  const auto it = factors_->find(node_->inputs[input].node.get());
  return it == factors_->end() ? nullptr : &it->second;
}

// Destroying a chain of a million ops must not recurse a million levels: the outermost destructor empties a
// worklist.
Node::~Node() {
  thread_local std::vector<std::shared_ptr<Node>>* work = nullptr;
  std::vector<std::shared_ptr<Node>> mine;
  const bool outermost = work == nullptr;
  if (outermost) work = &mine;
  for (Edge& e : inputs)
    if (e.node) work->push_back(std::move(e.node));
  for (Saved& s : saved)
    if (s.tensor.defined() && s.tensor.node()) {
      work->push_back(s.tensor.node());
    }
  saved.clear();
  if (outermost) {
    while (!mine.empty()) {
      auto node = std::move(mine.back());
      mine.pop_back();
      node.reset();  // its destructor adds to `mine`
    }
    work = nullptr;
  }
}

}  // namespace redco
