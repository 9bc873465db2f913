// Views as the pointers that the CPU's kernels take.
#pragma once

#include <span>

#include "base/error.h"
#include "kernels/native.h"
#include "kernels/view.h"

namespace redco::kernels {

// The elements of a view; null if the operand is absent. T must be the type of the dtype.
template <class T>
T* pointer(const View& v) {
  return v.present ? reinterpret_cast<T*>(Native::address(v.data)) : nullptr;
}

// The fp32 elements of a workspace from element `first` on; none of f64, for which products need none.
inline std::span<float> floats_of(const View& workspace, i64 first = 0) {
  if (!workspace.present || workspace.dtype != DType::f32) return {};
  return {pointer<float>(workspace) + first, static_cast<std::size_t>(workspace.numel() - first)};
}

// Calls f with a value of the floating type. Other types are a bug.
template <class F>
void visit_float(DType t, F&& f) {
  REDCO_CHECK(t == DType::f32 || t == DType::f64, "a kernel got a view of type {}", name_of(t));
  if (t == DType::f64) return f(double{});
  f(float{});
}

}  // namespace redco::kernels
