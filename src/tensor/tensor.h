// Tensor: one global value, stored with a Layout. It is a handle: copies share the value.
//
// Tensors are immutable; only optimizers, caches and buffers are written in place, by explicit ops. A 'meta'
// tensor has shape and layout but no storage. The leading `hidden` dims are batch dims of an enclosing
// vmap(); dim arguments of ops do not count them. Local storage is contiguous and row-major.
#pragma once

#include <memory>

#include "base/types.h"
#include "shard/layout.h"
#include "tensor/context.h"

namespace redco {

struct Node;

// Bytes of an arena, freed with the last tensor that uses them.
class Storage {
 public:
  Storage(std::shared_ptr<Arena> arena, i64 bytes);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  const DevicePtr& data() const { return data_; }
  i64 bytes() const { return bytes_; }
  bool is_planned() const { return arena_->is_planned(); }
  const Arena* arena() const { return arena_.get(); }

 private:
  std::shared_ptr<Arena> arena_;
  i64 offset_, bytes_;
  DevicePtr data_;
};

class Tensor {
 public:
  // Undefined: it has no value. All functions but defined() and view() are then errors.
  Tensor() = default;
  // Uninitialized, in the current context.
  Tensor(const Shape& shape, DType dtype, const Layout& layout, int hidden = 0);
  // The same bytes with another shape and layout; local sizes must be equal.
  static Tensor view(const Tensor& of, const Shape& shape, const Layout& layout, int hidden);
  // A tensor in the bytes of another one, from its local element `first` on.
  static Tensor within(const Tensor& of, i64 first, const Shape& shape, const Layout& layout);

  bool defined() const { return impl_ != nullptr; }
  const Shape& shape() const { return impl().shape; }
  const Shape& local() const { return impl().local; }
  const Layout& layout() const { return impl().layout; }
  DType dtype() const { return impl().dtype; }
  bool is_float() const { return impl().dtype != DType::i32; }
  const Arena* arena() const { return impl().storage->arena(); }
  bool is_meta() const { return impl().storage->is_planned(); }
  int rank() const { return static_cast<int>(impl().shape.size()); }  // all dims, also hidden ones
  int hidden() const { return impl().hidden; }
  int visible() const { return rank() - hidden(); }
  // The index among all dims of visible dim d; negative d counts from the right.
  int axis(int d) const;
  i64 size(int d) const { return shape()[axis(d)]; }
  i64 numel() const { return redco::numel(impl().shape); }
  i64 local_numel() const { return redco::numel(impl().local); }
  // Elements in memory, with the ones that fill the groups of a grouped type.
  i64 local_stored() const { return stored_numel(dtype(), impl().local); }
  i64 local_bytes() const { return bytes_of(dtype(), local_stored()); }
  // The part of dim `dim` that this rank holds (index among all dims).
  Range range(int dim) const;

  // Whether this rank's block counts in a sum over all ranks: of equal copies, only the first does.
  bool is_first_copy() const;

  // The local block, as kernels take it; absent for an undefined tensor. Kernels write only to tensors that
  // their op has just created, and to those of optimizers, caches and buffers. tensor/transfer.h copies the
  // elements from and to the host.
  operator View() const;  // NOLINT: a tensor is passed where a kernel takes a view
  View view() const { return *this; }

  // --- Tape ---
  const std::shared_ptr<Node>& node() const { return impl().node; }
  int node_output() const { return impl().node_output; }
  void set_node(std::shared_ptr<Node> node, int output) const;
  // A new handle to the same value, without a tape node.
  Tensor detached() const;
  // A new handle that is a leaf of the tape, so that gradients with respect to it can be computed.
  Tensor watched() const;
  // A new handle to the same value and tape node with another layout and storage: the result of a
  // redistribution.
  Tensor with_storage_of(const Tensor& other) const;
  // The same with another placement on an axis that cuts it at the same borders, so that the bytes are the
  // same.
  Tensor with_placement(Axis axis, const Placement& p) const;
  // Replaces a Partial in place by its reduced value: the storage changes, the value does not.
  void promote(const Tensor& reduced) const;
  Tensor with_hidden(int hidden) const;
  // A new handle to a parameter that is sharded over data axes only to save memory: each op gathers it
  // (OpCall). What an op keeps for its backward pass is this handle, so the rows of the other ranks are in
  // memory only during the op.
  Tensor gathered_on_use() const;
  bool is_gathered_on_use() const { return impl().gathered_on_use; }
  // The placement that ops see: that of the tensor, or Replicated on the data axes if they gather it.
  Layout used_layout() const;
  const void* identity() const { return impl_.get(); }
  // Tensors that share a storage may be different parts of it.
  const std::shared_ptr<Storage>& storage() const { return impl().storage; }
  // Whether both have the same local bytes.
  bool same_bytes(const Tensor& other) const {
    return impl().storage == other.impl().storage && impl().offset == other.impl().offset;
  }

 private:
  struct Impl {
    Impl() {}  // NOLINT: a defaulted constructor would fill all bytes with zeros first
    Shape shape, local;
    Layout layout;
    DType dtype = DType::f32;
    int hidden = 0;
    bool gathered_on_use = false;
    std::shared_ptr<Storage> storage;
    i64 offset = 0;  // of the first local element in the storage, in bytes
    std::shared_ptr<Node> node;
    int node_output = 0;
  };
  explicit Tensor(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
  static std::shared_ptr<Impl> without_storage(const Shape& shape, DType dtype, const Layout& layout,
                                               int hidden);
  [[noreturn]] static void no_value();
  Impl& impl() const {
    if (!impl_) [[unlikely]]
      no_value();
    return *impl_;
  }
  std::shared_ptr<Impl> impl_;
};

// A few tensors: the inputs, outputs or gradients of an op.
using Tensors = SmallVector<Tensor, 8>;

std::string describe(const Tensor& t);  // "f32 (4, 256, 768) [mp R, dp S(0)]"

[[noreturn]] void throw_not_float(DType t);

// Calls f with a value of the tensor's floating type, for code on the host. Other types are a bug.
template <class F>
decltype(auto) visit_float(DType t, F&& f) {
  if (t != DType::f32 && t != DType::f64) throw_not_float(t);
  if (t == DType::f64) return f(double{});
  return f(float{});
}

}  // namespace redco
