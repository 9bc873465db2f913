#include <algorithm>

#include "kernels/cpu/device.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/mixed.h"
#include "kernels/cpu/nn.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"
#include "kernels/isa.h"

namespace redco::kernels {
namespace {

i64 chunk_of(i64 R) { return std::max<i64>(8, ceil_div(R, 64)); }

// Rows are split into at most 64 chunks that depend only on R. Each chunk adds its parameter gradients to a
// separate row; these rows are then added in order. Calls f(begin, end, dw, db).
template <class T, class F>
void rows_with_gradients(i64 R, i64 C, T* dw, T* db, T* workspace, const F& f) {
  const i64 size = chunk_of(R), chunks = ceil_div(R, size);
  T* const first = workspace;
  T* const second = first + (dw ? chunks * C : 0);
  const auto row = [&](T* parts, i64 i) {
    std::fill(parts + i * C, parts + (i + 1) * C, T(0));
    return parts + i * C;
  };
  for_each(chunks, R * C, [&](i64 i) {
    f(i * size, std::min(R, (i + 1) * size), dw ? row(first, i) : nullptr, db ? row(second, i) : nullptr);
  });
  const auto add_up = [&](const T* parts, T* out) {
    constexpr i64 kColumns = 512;
    for_each(ceil_div(C, kColumns), chunks * C, [&](i64 t) {
      const i64 c0 = t * kColumns, n = std::min(kColumns, C - c0);
      double acc[kColumns] = {};
      REDCO_ISA_CALL(add_rows(parts + c0, C, chunks, n, acc));
      for (i64 c = 0; c < n; ++c) out[c0 + c] = static_cast<T>(acc[c]);
    });
  };
  if (dw) add_up(first, dw);
  if (db) add_up(second, db);
}

}  // namespace

i64 norm_backward_workspace(i64 R, i64 C, int gradients) { return ceil_div(R, chunk_of(R)) * C * gradients; }

template <class T, class X, class Y>
void layer_norm(const X* x, const T* w, const T* b, T eps, Y* y, T* mean, T* rstd, i64 R, i64 C) {
  for_rows(R, C, [&](i64 r, i64 end) {
    REDCO_ISA_CALL(layer_norm(x + r * C, w, b, eps, y + r * C, mean + r, rstd + r, end - r, C));
  });
}

template <class T, class X, class G>
void layer_norm_backward(const X* x, const T* w, const T* mean, const T* rstd, const G* g, X* dx, T* dw,
                         T* db, i64 R, i64 C, T* workspace) {
  rows_with_gradients(R, C, dw, db, workspace, [&](i64 r, i64 end, T* dw_part, T* db_part) {
    REDCO_ISA_CALL(layer_norm_backward(x + r * C, w, mean + r, rstd + r, g + r * C, dx + r * C, dw_part,
                                       db_part, end - r, C));
  });
}

template <class T, class X, class Y>
void rms_norm(const X* x, const T* w, T eps, Y* y, T* rstd, i64 R, i64 C) {
  for_rows(R, C, [&](i64 r, i64 end) {
    REDCO_ISA_CALL(rms_norm(x + r * C, w, eps, y + r * C, rstd + r, end - r, C));
  });
}

template <class T, class X, class G>
void rms_norm_backward(const X* x, const T* w, const T* rstd, const G* g, X* dx, T* dw, i64 R, i64 C,
                       T* workspace) {
  rows_with_gradients<T>(R, C, dw, nullptr, workspace, [&](i64 r, i64 end, T* dw_part, T*) {
    REDCO_ISA_CALL(rms_norm_backward(x + r * C, w, rstd + r, g + r * C, dx + r * C, dw_part, end - r, C));
  });
}

// The types of x and of y or g.
#define INSTANTIATE(T, X, Y)                                                                                \
  template void layer_norm(const X*, const T*, const T*, T, Y*, T*, T*, i64, i64);                          \
  template void layer_norm_backward(const X*, const T*, const T*, const T*, const Y*, X*, T*, T*, i64, i64, \
                                    T*);                                                                    \
  template void rms_norm(const X*, const T*, T, Y*, T*, i64, i64);                                          \
  template void rms_norm_backward(const X*, const T*, const T*, const Y*, X*, T*, i64, i64, T*);
INSTANTIATE(double, double, double)
INSTANTIATE(float, float, float)
INSTANTIATE(float, float, bf16)
INSTANTIATE(float, bf16, float)
INSTANTIATE(float, bf16, bf16)
#undef INSTANTIATE

void add_norms(Kernels& t) {
  t.layer_norm.run = [](const View& x, const View& w, const View& b, const double& eps, const View& y,
                        const View& mean, const View& rstd) {
    visit_activations(x.dtype, y.dtype, [&](auto zero, auto of_x, auto of_y) {
      using T = decltype(zero);
      layer_norm(pointer<decltype(of_x)>(x), pointer<T>(w), pointer<T>(b), static_cast<T>(eps),
                 pointer<decltype(of_y)>(y), pointer<T>(mean), pointer<T>(rstd), x.leading(), x.last());
    });
  };
  t.layer_norm_backward.run = [](const View& x, const View& w, const View& mean, const View& rstd,
                                 const View& g, const View& dx, const View& dw, const View& db,
                                 const View& workspace) {
    visit_activations(x.dtype, g.dtype, [&](auto zero, auto of_x, auto of_g) {
      using T = decltype(zero);
      using X = decltype(of_x);
      layer_norm_backward(pointer<X>(x), pointer<T>(w), pointer<T>(mean), pointer<T>(rstd),
                          pointer<decltype(of_g)>(g), pointer<X>(dx), pointer<T>(dw), pointer<T>(db),
                          x.leading(), x.last(), pointer<T>(workspace));
    });
  };
  t.rms_norm.run = [](const View& x, const View& w, const double& eps, const View& y, const View& rstd) {
    visit_activations(x.dtype, y.dtype, [&](auto zero, auto of_x, auto of_y) {
      using T = decltype(zero);
      rms_norm(pointer<decltype(of_x)>(x), pointer<T>(w), static_cast<T>(eps), pointer<decltype(of_y)>(y),
               pointer<T>(rstd), x.leading(), x.last());
    });
  };
  t.rms_norm_backward.run = [](const View& x, const View& w, const View& rstd, const View& g, const View& dx,
                               const View& dw, const View& workspace) {
    visit_activations(x.dtype, g.dtype, [&](auto zero, auto of_x, auto of_g) {
      using T = decltype(zero);
      using X = decltype(of_x);
      rms_norm_backward(pointer<X>(x), pointer<T>(w), pointer<T>(rstd), pointer<decltype(of_g)>(g),
                        pointer<X>(dx), pointer<T>(dw), x.leading(), x.last(), pointer<T>(workspace));
    });
  };
  t.norm_backward_workspace = norm_backward_workspace;
}

}  // namespace redco::kernels
