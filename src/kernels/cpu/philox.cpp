#include "kernels/philox.h"

#include <cmath>

#include "base/error.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/dropout.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/nn.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"
#include "kernels/isa.h"

namespace redco::kernels {
namespace {

// Calls f(offset of the run's first element, c0, c1, c2, c3, n) for runs along the last coordinate.
template <class F>
void for_runs(const Block4& b, i64 cost, const F& f) {
  const i64 cols = b.size[3], rows = b.size[0] * b.size[1] * b.size[2];
  if (cols <= 0 || rows <= 0) return;
  const i64 part = std::min<i64>(cols, 4096), across = ceil_div(cols, part);
  const i64 group = std::max<i64>(1, 4096 / part), down = ceil_div(rows, group);
  for_each(down * across, rows * cols * cost, [&](i64 t) {
    const i64 c = t % across * part, n = std::min(part, cols - c);
    for (i64 r = t / across * group, end = std::min(rows, r + group); r < end; ++r) {
      const i64 i2 = r % b.size[2], i1 = r / b.size[2] % b.size[1], i0 = r / b.size[2] / b.size[1];
      f(r * cols + c, static_cast<u32>(b.offset[0] + i0), static_cast<u32>(b.offset[1] + i1),
        static_cast<u32>(b.offset[2] + i2), static_cast<u32>(b.offset[3] + c), n);
    }
  });
}

constexpr i64 kRun = 4096;  // longest run in for_runs

}  // namespace

u32 drop_threshold(double rate) {
  REDCO_CHECK(rate >= 0 && rate < 1, "the dropout rate is {}; expected at least 0 and below 1", rate);
  return static_cast<u32>(std::ceil(rate * 16777216.0));  // uniform < rate is (word >> 8) < rate * 2^24
}

void philox_uniform(u64 key, const Block4& b, float* out) {
  for_runs(b, 4, [&](i64 at, u32 c0, u32 c1, u32 c2, u32 c3, i64 n) {
    u32 words[kRun];
    REDCO_ISA_CALL(philox_words(key, c0, c1, c2, c3, words, nullptr, n));
    for (i64 i = 0; i < n; ++i) out[at + i] = static_cast<float>(words[i] >> 8) * 0x1p-24f;
  });
}

void philox_normal(u64 key, const Block4& b, float* out) {
  // In fp64 with libm, rounded to fp32, and outside the instruction-set code, so that all instruction sets
  // give the same bits.
  for_runs(b, 16, [&](i64 at, u32 c0, u32 c1, u32 c2, u32 c3, i64 n) {
    u32 first[kRun], second[kRun];
    REDCO_ISA_CALL(philox_words(key, c0, c1, c2, c3, first, second, n));
    for (i64 i = 0; i < n; ++i) {
      const double u = (first[i] + 0.5) * 0x1p-32, angle = second[i] * (2 * M_PI * 0x1p-32);
      out[at + i] = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(angle));
    }
  });
}

template <class T>
void dropout(const T* x, T* y, double rate, u64 key, const Block4& b) {
  const u32 below = drop_threshold(rate);
  const T scale = static_cast<T>(1 / (1 - rate));
  for_runs(b, 4, [&](i64 at, u32 c0, u32 c1, u32 c2, u32 c3, i64 n) {
    REDCO_ISA_CALL(dropout(x + at, y + at, below, scale, key, c0, c1, c2, c3, n));
  });
}
template void dropout(const float*, float*, double, u64, const Block4&);
template void dropout(const double*, double*, double, u64, const Block4&);

u32 philox_word(u64 key, i64 c0, i64 c1, i64 c2, i64 c3) {
  u32 word;
  REDCO_ISA_CALL(philox_words(key, static_cast<u32>(c0), static_cast<u32>(c1), static_cast<u32>(c2),
                              static_cast<u32>(c3), &word, nullptr, 1));
  return word;
}

void add_randomness(Kernels& t) {
  t.uniform.run = [](const u64& key, const Block4& b, const View& y) {
    philox_uniform(key, b, pointer<float>(y));
  };
  t.normal.run = [](const u64& key, const Block4& b, const View& y) {
    philox_normal(key, b, pointer<float>(y));
  };
  t.dropout.run = [](const double& rate, const u64& key, const Block4& b, const View& x, const View& y) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      dropout<T>(pointer<T>(x), pointer<T>(y), rate, key, b);
    });
  };
}

}  // namespace redco::kernels
