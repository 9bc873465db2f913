// Kernels on operands that are f32 or bf16, in any mixture: pieces of bf16 are widened, and results are
// rounded.
#pragma once

#include <algorithm>
#include <array>

#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"
#include "kernels/isa.h"

namespace redco::kernels {

// Calls f(zero of the type of arithmetic, zero of x's type).
template <class F>
void visit_activation(DType x, F&& f) {
  if (x == DType::bf16) return f(float{}, bf16{});
  visit_float(x, [&](auto zero) { f(zero, zero); });
}
// f(zero of the type of arithmetic, zero of x's type, zero of y's type).
template <class F>
void visit_activations(DType x, DType y, F&& f) {
  visit_activation(x, [&](auto wide, auto of_x) {
    if constexpr (std::is_same_v<decltype(wide), float>) {
      if (y == DType::bf16) return f(wide, of_x, bf16{});
    }
    f(wide, of_x, wide);
  });
}

// Calls f(inputs in f32, outputs in f32, n) for pieces of row-major operands of equal size, each f32 or bf16.
template <std::size_t kInputs, std::size_t kOutputs, class F>
void for_f32_pieces(const std::array<View, kInputs>& x, const std::array<View, kOutputs>& y, const F& f) {
  constexpr i64 kPiece = 1024;
  bool all_f32 = true;
  for (const View& v : x) all_f32 = all_f32 && v.dtype == DType::f32;
  for (const View& v : y) all_f32 = all_f32 && v.dtype == DType::f32;
  for_blocks(y[0].numel(), [&](i64 begin, i64 end) {
    std::array<std::array<float, kPiece>, kInputs + kOutputs> rooms;  // NOLINT: written before it is read
    const i64 step = all_f32 ? end - begin : kPiece;
    for (i64 i = begin; i < end; i += step) {
      const i64 n = std::min(step, end - i);
      std::array<const float*, kInputs> in{};
      for (std::size_t k = 0; k < kInputs; ++k) {
        in[k] = rooms[k].data();
        if (x[k].dtype == DType::f32)
          in[k] = pointer<float>(x[k]) + i;
        else
          REDCO_ISA_CALL(from_bf16(pointer<u16>(x[k]) + i, rooms[k].data(), n));
      }
      std::array<float*, kOutputs> out{};
      for (std::size_t k = 0; k < kOutputs; ++k)
        out[k] = y[k].dtype == DType::f32 ? pointer<float>(y[k]) + i : rooms[kInputs + k].data();
      f(in, out, n);
      for (std::size_t k = 0; k < kOutputs; ++k)
        if (y[k].dtype == DType::bf16) REDCO_ISA_CALL(to_bf16(out[k], pointer<u16>(y[k]) + i, n));
    }
  });
}

}  // namespace redco::kernels
