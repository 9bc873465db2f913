#include "kernels/cpu/conv.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/views.h"

namespace redco::kernels {

namespace {

// For each of the output's leading indices, the number of the operand's block (its last `trailing` dims) that
// is needed there.
std::vector<i64> blocks_of(const View& t, const View& y, int trailing) {
  if (!t.present) return {};
  const int leading = y.rank() - 4;
  i64 block = 1, count = 1;
  for (int d = t.rank() - trailing; d < t.rank(); ++d) block *= t.shape[d];
  for (int D = 0; D < leading; ++D) count *= y.shape[D];
  const Strides step = t.steps();
  std::vector<i64> out(static_cast<std::size_t>(count));
  for (i64 i = 0; i < count; ++i) {
    i64 rest = i, at = 0;
    for (int D = leading - 1; D >= 0; --D) {
      at += rest % y.shape[D] * step[D];
      rest /= y.shape[D];
    }
    out[static_cast<std::size_t>(i)] = block > 0 ? at / block : 0;
  }
  return out;
}

// Calls f with the independent convolutions of two operands and the pointers, unless the result is empty.
template <class F>
void with_groups(const View& a, const View& b, const View& out, const F& f) {
  if (out.numel() == 0) return;
  const std::vector<i64> a_of = blocks_of(a, out, 4), b_of = blocks_of(b, out, 4);
  const ConvGroups groups{a.shape[a.rank() - 4], a_of, b_of};
  visit_float(a.dtype, [&](auto zero) {
    using T = decltype(zero);
    f.template operator()<T>(groups, pointer<T>(a), pointer<T>(b), pointer<T>(out));
  });
}

template <class T>
std::span<T> elements(const View& workspace) {
  return {pointer<T>(workspace), static_cast<std::size_t>(workspace.numel())};
}

i64 planes_of(const View& v) { return v.leading(2); }

// The k largest elements of each row become 1, of equal ones the first.
template <class T>
void top_k_mask(const T* x, i64 k, T* y, i64 rows, i64 columns) {
  fill(y, T(0), rows * columns);
  for (; rows > 0; --rows, x += columns, y += columns)
    for (i64 i = 0; i < k; ++i) {
      i64 best = -1;
      for (i64 c = 0; c < columns; ++c)
        if (y[c] == 0 && (best < 0 || x[c] > x[best])) best = c;
      y[best] = 1;
    }
}

}  // namespace

void add_image_and_expert_kernels(Kernels& t) {
  t.top_k_mask.run = [](const View& x, const i64& k, const View& y) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      top_k_mask<T>(pointer<T>(x), k, pointer<T>(y), x.leading(), x.last());
    });
  };
  t.conv2d.run = [](const ConvShape& s, const View& x, const View& w, const View& bias, const View& y,
                    const View& workspace) {
    const std::vector<i64> bias_of = blocks_of(bias, y, 1);
    with_groups(x, w, y, [&]<class T>(const ConvGroups& g, const T* px, const T* pw, T* py) {
      conv2d<T>(s, g, px, pw, pointer<T>(bias), bias_of, py, elements<T>(workspace));
    });
  };
  t.conv2d_workspace = conv2d_workspace;
  t.conv2d_input_gradient.run = [](const ConvShape& s, const View& dy, const View& w, const View& dx,
                                   const View& workspace) {
    with_groups(dy, w, dx, [&]<class T>(const ConvGroups& g, const T* pdy, const T* pw, T* pdx) {
      conv2d_input_gradient<T>(s, g, pdy, pw, pdx, elements<T>(workspace));
    });
  };
  t.conv2d_input_gradient_workspace = conv2d_input_gradient_workspace;
  t.conv2d_weight_gradient.run = [](const ConvShape& s, const View& dy, const View& x, const View& dw,
                                    const View& workspace) {
    with_groups(dy, x, dw, [&]<class T>(const ConvGroups& g, const T* pdy, const T* px, T* pdw) {
      conv2d_weight_gradient<T>(s, g, pdy, px, pdw, elements<T>(workspace));
    });
  };
  t.conv2d_weight_gradient_workspace = conv2d_weight_gradient_workspace;
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
