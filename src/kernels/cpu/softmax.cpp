// Softmax, and cross-entropy over a shard of the vocabulary.
#include <cmath>

#include "kernels/cpu/device.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/mixed.h"
#include "kernels/cpu/nn.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"
#include "kernels/isa.h"

namespace redco::kernels {

template <class T>
void softmax(const T* x, T* y, i64 R, i64 C) {
  for_rows(R, C, [&](i64 r, i64 end) { REDCO_ISA_CALL(softmax(x + r * C, y + r * C, end - r, C)); });
}

template <class T>
void log_softmax(const T* x, T* y, i64 R, i64 C) {
  for_rows(R, C, [&](i64 r, i64 end) { REDCO_ISA_CALL(log_softmax(x + r * C, y + r * C, end - r, C)); });
}

template <class T>
void log_softmax_backward(const T* y, const T* g, T* dx, i64 R, i64 C) {
  for_rows(R, C, [&](i64 r, i64 end) {
    REDCO_ISA_CALL(log_softmax_backward(y + r * C, g + r * C, dx + r * C, end - r, C));
  });
}

template <class T, class X>
void row_max(const X* x, T* max_out, i64 R, i64 C) {
  for_rows(R, C, [&](i64 begin, i64 end) {
    REDCO_ISA_CALL(row_maxima(x + begin * C, end - begin, C, max_out + begin));
  });
}

template <class T, class X>
void sum_exp_and_target(const X* x, const T* max, const i32* ids, i64 first, T* sum_exp, T* target, i64 R,
                        i64 C) {
  for_rows(R, C, [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      const i64 c = ids[r] - first;
      sum_exp[r] = REDCO_ISA_CALL(sum_exp(x + r * C, max[r], C));
      target[r] = ids[r] >= 0 && c >= 0 && c < C ? wide(x[r * C + c]) : T(0);
    }
  });
}

template <class T>
void cross_entropy(const T* max, const T* sum_exp, const T* target, const i32* ids, T* loss, T* lse, i64 R) {
  for_blocks(R, [&](i64 r, i64 end) {
    for (; r < end; ++r) {
      lse[r] = max[r] + std::log(sum_exp[r]);
      loss[r] = ids[r] < 0 ? T(0) : lse[r] - target[r];
    }
  });
}

template <class T, class X>
void cross_entropy_backward(const X* x, const T* lse, const i32* ids, i64 first, const T* g, X* dx, i64 R,
                            i64 C) {
  for_rows(R, C, [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      X* const out = dx + r * C;
      if (ids[r] < 0) {
        std::fill(out, out + C, X{});
        continue;
      }
      const i64 c = ids[r] - first;
      const bool here = c >= 0 && c < C;
      T target = here ? wide(x[r * C + c]) : T(0);
      REDCO_ISA_CALL(scaled_exp(x + r * C, lse[r], g[r], out, C));
      if (!here) continue;
      if constexpr (std::is_same_v<X, bf16>) {
        // The difference is rounded once.
        REDCO_ISA_CALL(scaled_exp(&target, lse[r], g[r], &target, 1));
        out[c] = narrow(target - g[r]);
      } else {
        out[c] -= g[r];
      }
    }
  });
}

#define INSTANTIATE(T)                                                  \
  template void softmax(const T*, T*, i64, i64);                        \
  template void log_softmax(const T*, T*, i64, i64);                    \
  template void log_softmax_backward(const T*, const T*, T*, i64, i64); \
  template void cross_entropy(const T*, const T*, const T*, const i32*, T*, T*, i64);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE
#define INSTANTIATE(T, X)                                                                  \
  template void row_max(const X*, T*, i64, i64);                                           \
  template void sum_exp_and_target(const X*, const T*, const i32*, i64, T*, T*, i64, i64); \
  template void cross_entropy_backward(const X*, const T*, const i32*, i64, const T*, X*, i64, i64);
INSTANTIATE(float, float)
INSTANTIATE(float, bf16)
INSTANTIATE(double, double)
#undef INSTANTIATE

void add_softmax(Kernels& t) {
  t.softmax.run = [](const View& x, const View& y) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      softmax<T>(pointer<T>(x), pointer<T>(y), x.leading(), x.last());
    });
  };
  t.log_softmax.run = [](const View& x, const View& y) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      log_softmax(pointer<T>(x), pointer<T>(y), x.leading(), x.last());
    });
  };
  t.log_softmax_backward.run = [](const View& y, const View& g, const View& dx) {
    visit_float(y.dtype, [&](auto zero) {
      using T = decltype(zero);
      log_softmax_backward(pointer<T>(y), pointer<T>(g), pointer<T>(dx), y.leading(), y.last());
    });
  };
  t.sum_exp_and_target.run = [](const View& x, const View& max, const View& ids, const i64& first,
                                const View& sums) {
    visit_activation(x.dtype, [&](auto zero, auto element) {
      using T = decltype(zero);
      const i64 R = ids.numel();
      sum_exp_and_target(pointer<decltype(element)>(x), pointer<T>(max), pointer<i32>(ids), first,
                         pointer<T>(sums), pointer<T>(sums) + R, R, x.last());
    });
  };
  t.cross_entropy.run = [](const View& max, const View& sums, const View& ids, const View& loss,
                           const View& lse) {
    visit_float(max.dtype, [&](auto zero) {
      using T = decltype(zero);
      const i64 R = ids.numel();
      cross_entropy<T>(pointer<T>(max), pointer<T>(sums), pointer<T>(sums) + R, pointer<i32>(ids),
                       pointer<T>(loss), pointer<T>(lse), R);
    });
  };
  t.cross_entropy_backward.run = [](const View& x, const View& ids, const View& lse, const View& g,
                                    const i64& first, const View& dx) {
    visit_activation(x.dtype, [&](auto zero, auto element) {
      using T = decltype(zero);
      using X = decltype(element);
      cross_entropy_backward(pointer<X>(x), pointer<T>(lse), pointer<i32>(ids), first, pointer<T>(g),
                             pointer<X>(dx), ids.numel(), x.last());
    });
  };
  t.max_last.run = [](const View& x, const View& y) {
    visit_activation(x.dtype, [&](auto zero, auto element) {
      row_max(pointer<decltype(element)>(x), pointer<decltype(zero)>(y), y.numel(), x.last());
    });
  };
}

}  // namespace redco::kernels
