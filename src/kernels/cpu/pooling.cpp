// Pooling of images, declared in conv.h.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/conv.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"
#include "kernels/isa.h"

namespace redco::kernels {
namespace {

i64 planes_of(const View& v) { return v.leading(2); }

bool pairs(const PoolShape& s) {
  return s.kernel == std::array<i64, 2>{2, 2} && s.stride == s.kernel &&
         s.padding == std::array<i64, 2>{0, 0};
}

// Calls f(window index, pixel index) for every pixel inside the plane of every window.
template <class F>
void for_windows(const PoolShape& s, const F& f) {
  const i64 rows = s.out_height(), columns = s.out_width();
  for (i64 i = 0; i < rows; ++i)
    for (i64 j = 0; j < columns; ++j) {
      const i64 top = i * s.stride[0] - s.padding[0], left = j * s.stride[1] - s.padding[1];
      for (i64 y = std::max<i64>(top, 0); y < std::min(s.height, top + s.kernel[0]); ++y)
        for (i64 x = std::max<i64>(left, 0); x < std::min(s.width, left + s.kernel[1]); ++x)
          f(i * columns + j, y * s.width + x);
    }
}

// Calls f(plane) for all planes, in groups large enough for a thread.
template <class F>
void for_planes(const PoolShape& s, i64 planes, const F& f) {
  for_rows(planes, s.height * s.width, [&](i64 begin, i64 end) {
    for (i64 p = begin; p < end; ++p) f(p);
  });
}

}  // namespace

template <class T>
void avg_pool2d(const PoolShape& s, i64 planes, const T* x, const T* gate, T* y) {
  const i64 rows = s.out_height(), columns = s.out_width(), size = s.height * s.width;
  for_planes(s, planes, [&](i64 p) {
    const T *in = x + p * size, *open = gate ? gate + p * size : nullptr;
    T* out = y + p * rows * columns;
    if (pairs(s)) {
      for (i64 i = 0; i < rows; ++i) {
        const T *a = in + 2 * i * s.width, *g = open ? open + 2 * i * s.width : nullptr;
        REDCO_ISA_CALL(avg_pairs(a, a + s.width, g, g ? g + s.width : nullptr, out + i * columns, columns));
      }
      return;
    }
    std::fill(out, out + rows * columns, T(0));
    for_windows(s, [&](i64 window, i64 pixel) {
      if (!open || !(open[pixel] <= 0)) out[window] += in[pixel];
    });
    const T share = T(1) / static_cast<T>(s.kernel[0] * s.kernel[1]);
    for (i64 k = 0; k < rows * columns; ++k) out[k] *= share;
  });
}

template <class T>
void avg_unpool2d(const PoolShape& s, i64 planes, const T* y, const T* gate, T* x) {
  const i64 rows = s.out_height(), columns = s.out_width(), size = s.height * s.width;
  for_planes(s, planes, [&](i64 p) {
    const T *in = y + p * rows * columns, *open = gate ? gate + p * size : nullptr;
    T* out = x + p * size;
    if (pairs(s)) {
      for (i64 i = 0; i < rows; ++i) {
        T* a = out + 2 * i * s.width;
        const T* g = open ? open + 2 * i * s.width : nullptr;
        REDCO_ISA_CALL(spread_pairs(in + i * columns, g, g ? g + s.width : nullptr, a, a + s.width, columns));
        if (s.width % 2) a[s.width - 1] = a[2 * s.width - 1] = 0;
      }
      std::fill(out + 2 * rows * s.width, out + size, T(0));
      return;
    }
    std::fill(out, out + size, T(0));
    const T share = T(1) / static_cast<T>(s.kernel[0] * s.kernel[1]);
    for_windows(s, [&](i64 window, i64 pixel) {
      if (!open || !(open[pixel] <= 0)) out[pixel] += share * in[window];
    });
  });
}

template <class T>
void max_pool2d(const PoolShape& s, i64 planes, const T* x, T* y, i32* from) {
  const i64 windows = s.out_height() * s.out_width(), size = s.height * s.width;
  for_planes(s, planes, [&](i64 p) {
    const T* in = x + p * size;
    T* out = y + p * windows;
    i32* at = from + p * windows;
    std::fill(at, at + windows, -1);
    for_windows(s, [&](i64 window, i64 pixel) {
      if (at[window] >= 0 && !(in[pixel] > out[window]) &&
          !(std::isnan(in[pixel]) && !std::isnan(out[window])))
        return;
      out[window] = in[pixel];
      at[window] = static_cast<i32>(pixel);
    });
  });
}

template <class T>
void take_windows(i64 planes, i64 pixels, i64 windows, const T* x, const i32* from, T* y) {
  for_rows(planes, pixels, [&](i64 begin, i64 end) {
    for (i64 k = begin * windows; k < end * windows; ++k) y[k] = x[k / windows * pixels + from[k]];
  });
}

template <class T>
void put_windows(i64 planes, i64 pixels, i64 windows, const T* y, const i32* from, T* x) {
  for_rows(planes, pixels, [&](i64 begin, i64 end) {
    std::fill(x + begin * pixels, x + end * pixels, T(0));
    for (i64 k = begin * windows; k < end * windows; ++k) x[k / windows * pixels + from[k]] += y[k];
  });
}

void add_pooling(Kernels& t) {
  t.avg_pool2d.run = [](const PoolShape& s, const View& x, const View& gate, const View& y) {
    if (y.numel() == 0) return;
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      avg_pool2d<T>(s, planes_of(y), pointer<T>(x), pointer<T>(gate), pointer<T>(y));
    });
  };
  t.avg_unpool2d.run = [](const PoolShape& s, const View& x, const View& gate, const View& y) {
    if (y.numel() == 0) return;
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      avg_unpool2d<T>(s, planes_of(y), pointer<T>(x), pointer<T>(gate), pointer<T>(y));
    });
  };
  t.max_pool2d.run = [](const PoolShape& s, const View& x, const View& y, const View& from) {
    if (y.numel() == 0) return;
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      max_pool2d<T>(s, planes_of(y), pointer<T>(x), pointer<T>(y), pointer<i32>(from));
    });
  };
  t.take_windows.run = [](const View& x, const View& from, const View& y) {
    if (y.numel() == 0) return;
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      take_windows<T>(planes_of(y), x.shape[x.rank() - 2] * x.last(), y.shape[y.rank() - 2] * y.last(),
                      pointer<T>(x), pointer<i32>(from), pointer<T>(y));
    });
  };
  t.put_windows.run = [](const View& x, const View& from, const View& y) {
    if (y.numel() == 0) return;
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      put_windows<T>(planes_of(y), y.shape[y.rank() - 2] * y.last(), x.shape[x.rank() - 2] * x.last(),
                     pointer<T>(x), pointer<i32>(from), pointer<T>(y));
    });
  };
}

}  // namespace redco::kernels
