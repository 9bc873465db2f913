// Rows by id, and rotary position embedding.
#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/mixed.h"
#include "kernels/cpu/nn.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"
#include "kernels/isa.h"

namespace redco::kernels {

template <class T>
void embedding(const T* table, i64 first, i64 rows, const i32* ids, T* out, i64 R, i64 C) {
  for_rows(R, C, [&](i64 begin, i64 end) {
    for (i64 r = begin; r < end; ++r) {
      const i64 id = ids[r] - first;
      if (id >= 0 && id < rows)
        std::copy(table + id * C, table + (id + 1) * C, out + r * C);
      else
        std::fill(out + r * C, out + (r + 1) * C, T{});
    }
  });
}

template <class T>
void scatter_rows(const T* g, const i32* ids, i64 first, i64 rows, T* out, i64 R, i64 C) {
  // Each piece owns rows of `out` and reads all ids, so each row is summed in the order of r.
  const i64 size = std::max<i64>(1, ceil_div(rows, 64)), pieces = ceil_div(rows, size);
  for_each(pieces, (rows + R) * C, [&](i64 i) {
    const i64 begin = i * size, end = std::min(rows, begin + size);
    std::fill(out + begin * C, out + end * C, T(0));
    for (i64 r = 0; r < R; ++r) {
      const i64 id = ids[r] - first;
      if (id >= begin && id < end) REDCO_ISA_CALL(axpy(T(1), g + r * C, out + id * C, C));
    }
  });
}

template <class T>
void pick(const T* x, const i32* ids, i64 first, T* out, i64 R, i64 C) {
  for_each(R, R, [&](i64 r) {
    const i64 c = ids[r] - first;
    out[r] = c >= 0 && c < C ? x[r * C + c] : T(0);
  });
}

template <class T>
void unpick(const T* g, const i32* ids, i64 first, T* out, i64 R, i64 C) {
  for_rows(R, C, [&](i64 begin, i64 end) {
    std::fill(out + begin * C, out + end * C, T(0));
    for (i64 r = begin; r < end; ++r) {
      const i64 c = ids[r] - first;
      if (c >= 0 && c < C) out[r * C + c] = g[r];
    }
  });
}

template <class X>
void rope(const X* x, const i32* positions, const float* inv_freq, i64 rotary, bool interleaved, int sign,
          double attention_factor, X* y, i64 B, i64 T_, i64 H, i64 D) {
  using T = wide_t<X>;
  REDCO_CHECK(rotary >= 0 && rotary <= D && rotary % 2 == 0, "rotary {} of {}", rotary, D);
  const i64 half = rotary / 2;
  const T factor = static_cast<T>(attention_factor);
  for_rows(B * T_, H * D + 16 * half, [&](i64 begin, i64 end) {
    std::vector<T> cs(static_cast<std::size_t>(rotary));
    for (i64 t = begin; t < end; ++t) {
      for (i64 i = 0; i < half; ++i) {
        const float angle = static_cast<float>(positions[t]) * inv_freq[i];
        cs[static_cast<std::size_t>(i)] = std::cos(static_cast<T>(angle)) * factor;
        cs[static_cast<std::size_t>(i + half)] =
            static_cast<T>(sign) * std::sin(static_cast<T>(angle)) * factor;
      }
      REDCO_ISA_CALL(
          rope(x + t * H * D, cs.data(), cs.data() + half, rotary, interleaved, y + t * H * D, H, D));
    }
  });
}

#define INSTANTIATE(T)                                                      \
  template void embedding(const T*, i64, i64, const i32*, T*, i64, i64);    \
  template void scatter_rows(const T*, const i32*, i64, i64, T*, i64, i64); \
  template void pick(const T*, const i32*, i64, T*, i64, i64);              \
  template void unpick(const T*, const i32*, i64, T*, i64, i64);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE
template void rope(const float*, const i32*, const float*, i64, bool, int, double, float*, i64, i64, i64,
                   i64);
template void rope(const double*, const i32*, const float*, i64, bool, int, double, double*, i64, i64, i64,
                   i64);
template void rope(const bf16*, const i32*, const float*, i64, bool, int, double, bf16*, i64, i64, i64, i64);
template void embedding(const bf16*, i64, i64, const i32*, bf16*, i64, i64);

void add_embedding(Kernels& t) {
  t.gather_rows.run = [](const View& table, const i64& first, const View& ids, const View& y) {
    if (is_grouped(y.dtype))
      return visit_groups(y.dtype, [&](auto zero) {
        using G = decltype(zero);
        embedding<G>(pointer<G>(table), first, table.shape[0], pointer<i32>(ids), pointer<G>(y), ids.numel(),
                     blocks_in<G>(y.last()));
      });
    if (y.dtype == DType::bf16)
      return embedding(pointer<bf16>(table), first, table.shape[0], pointer<i32>(ids), pointer<bf16>(y),
                       ids.numel(), y.last());
    visit_float(y.dtype, [&](auto zero) {
      using T = decltype(zero);
      embedding<T>(pointer<T>(table), first, table.shape[0], pointer<i32>(ids), pointer<T>(y), ids.numel(),
                   y.last());
    });
  };
  t.scatter_rows.run = [](const View& g, const View& ids, const i64& first, const View& y) {
    visit_float(y.dtype, [&](auto zero) {
      using T = decltype(zero);
      scatter_rows<T>(pointer<T>(g), pointer<i32>(ids), first, y.shape[0], pointer<T>(y), ids.numel(),
                      y.last());
    });
  };
  t.pick.run = [](const View& x, const View& ids, const i64& first, const View& y) {
    visit_float(y.dtype, [&](auto zero) {
      using T = decltype(zero);
      pick<T>(pointer<T>(x), pointer<i32>(ids), first, pointer<T>(y), y.numel(), x.last());
    });
  };
  t.unpick.run = [](const View& g, const View& ids, const i64& first, const View& y) {
    visit_float(y.dtype, [&](auto zero) {
      using T = decltype(zero);
      unpick<T>(pointer<T>(g), pointer<i32>(ids), first, pointer<T>(y), g.numel(), y.last());
    });
  };
  t.replace_id.run = [](const View& x, const i64& id, const i64& by, const View& y) {
    const i32* const from = pointer<i32>(x);
    i32* const to = pointer<i32>(y);
    for_blocks(x.numel(), [&](i64 i, i64 end) {
      for (; i < end; ++i) to[i] = from[i] == id ? static_cast<i32>(by) : from[i];
    });
  };
  t.check_ids.run = [](const View& ids, const IdRange& range, const View& found) {
    const i32* const id = pointer<i32>(ids);
    i32* const out = pointer<i32>(found);
    const i32 least = static_cast<i32>(range.least), end = static_cast<i32>(range.end);
    const i32 ignored = static_cast<i32>(range.ignored.value_or(range.least));
    const bool ignores = range.ignored.has_value();
    const auto bad = [=](i32 i) { return (i < least || i >= end) && !(ignores && i == ignored); };
    const i64 n = ids.numel();
    bool any = false;  // a loop without exits is vectorized
    for (i64 i = 0; i < n; ++i) any |= bad(id[i]);
    if (!any || out[0] != 0) return;
    out[0] = 1 + static_cast<i32>(range.use);
    out[1] = *std::find_if(id, id + n, bad);
    out[2] = end;
  };
  t.rope.run = [](const Rope& r, const View& x, const View& positions, const View& y) {
    visit_activation(x.dtype, [&](auto, auto element) {
      using X = decltype(element);
      rope(pointer<X>(x), pointer<i32>(positions), r.inv_freq->data(),
           2 * static_cast<i64>(r.inv_freq->size()), r.interleaved, r.sign, r.attention_factor, pointer<X>(y),
           x.shape[0], x.shape[1], x.shape[2], x.shape[3]);
    });
  };
}

}  // namespace redco::kernels
