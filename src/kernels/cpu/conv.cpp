#include "kernels/cpu/conv.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/device.h"
#include "kernels/cpu/isa/conv.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"
#include "kernels/isa.h"

namespace redco::kernels {
namespace {

i64 rounded(i64 n) { return ceil_div(n, kConvSlack) * kConvSlack; }

// The im2col matrix of an image: row i is the run of `length` elements at offset[i]. A run has the positions
// of the output in rows of `pitch` elements, of which the first `columns` are used. With stride 1 the runs
// overlap (implicit im2col), else each is a copy.
struct Im2col {
  i64 channels, kh, kw, rows, columns;
  bool shifted;
  i64 pitch() const { return shifted ? columns + kw - 1 : columns; }
  i64 plane() const { return (rows + kh - 1) * pitch(); }
  i64 length() const { return rows * columns == 0 ? 0 : (rows - 1) * pitch() + columns; }
  i64 elements() const { return (shifted ? channels * plane() : channels * kh * kw * length()) + kConvSlack; }
  i64 ld() const { return rounded(length()); }  // of a product with the matrix
  // Per kernel element (c, ky, kx).
  std::vector<i64> offset() const {
    std::vector<i64> out;
    for (i64 c = 0; c < channels; ++c)
      for (i64 y = 0; y < kh; ++y)
        for (i64 x = 0; x < kw; ++x)
          out.push_back(shifted ? c * plane() + y * pitch() + x : ((c * kh + y) * kw + x) * length());
    return out;
  }
};

bool shifted(const ConvShape& s) { return s.stride[0] == 1 && s.stride[1] == 1; }

Im2col im2col_of_image(const ConvShape& s) {
  return {s.channels, s.kernel_height, s.kernel_width, s.out_height(), s.out_width(), shifted(s)};
}

// Of dy, spread by the strides, for the gradient of the image.
Im2col im2col_of_gradient(const ConvShape& s) {
  return {s.outputs, s.kernel_height, s.kernel_width, s.height, s.width, true};
}

// Copies planes [height, width] into zeroed `to` [rows, pitch]: pixel (y, x) goes to (top + y * sy, left + x
// * sx) if that is inside.
template <class T>
void copy_padded(const T* from, i64 planes, i64 height, i64 width, i64 top, i64 left, i64 sy, i64 sx, T* to,
                 i64 rows, i64 pitch) {
  std::fill(to, to + planes * rows * pitch + kConvSlack, T(0));
  const i64 first = left < 0 ? ceil_div(-left, sx) : 0,
            last = left >= pitch ? 0 : std::min(width, (pitch - 1 - left) / sx + 1);
  for (i64 c = 0; c < planes; ++c)
    for (i64 y = 0; y < height; ++y) {
      const i64 row = top + y * sy;
      if (row < 0 || row >= rows) continue;
      const T* f = from + (c * height + y) * width;
      T* t = to + (c * rows + row) * pitch + left;
      if (sx == 1) {
        if (first < last) std::copy(f + first, f + last, t + first);
      } else {
        for (i64 x = first; x < last; ++x) t[x * sx] = f[x];
      }
    }
}

// Makes the im2col matrix of an image.
template <class T>
void im2col(const ConvShape& s, const Im2col& r, const T* x, T* to) {
  if (shifted(s))
    return copy_padded(x, s.channels, s.height, s.width, s.padding[0], s.padding[1], 1, 1, to,
                       r.rows + s.kernel_height - 1, r.pitch());
  for (i64 c = 0; c < s.channels; ++c)
    for (i64 ky = 0; ky < s.kernel_height; ++ky)
      for (i64 kx = 0; kx < s.kernel_width; ++kx)
        for (i64 i = 0; i < r.rows; ++i) {
          const i64 y = i * s.stride[0] + ky - s.padding[0];
          for (i64 j = 0; j < r.columns; ++j) {
            const i64 at = j * s.stride[1] + kx - s.padding[1];
            const bool inside = y >= 0 && y < s.height && at >= 0 && at < s.width;
            *to++ = inside ? x[(c * s.height + y) * s.width + at] : T(0);
          }
        }
  std::fill(to, to + kConvSlack, T(0));
}

// Copies planes with rows of `pitch` elements to planes [rows, columns] and adds the bias.
template <class T>
void crop(const Im2col& r, i64 planes, const T* from, i64 ld, const T* bias, T* to) {
  for (i64 o = 0; o < planes; ++o) {
    const T b = bias ? bias[o] : T(0);
    for (i64 i = 0; i < r.rows; ++i) {
      const T* f = from + o * ld + i * r.pitch();
      for (i64 j = 0; j < r.columns; ++j) to[j] = f[j] + b;
      to += r.columns;
    }
  }
}

// Cost of a convolution with this many multiply-adds, in element visits.
i64 work_of(i64 groups, i64 images, i64 outputs, i64 taps, i64 length) {
  return groups * images * std::max<i64>(1, outputs * taps / 16) * length;
}

// [O, C, kh, kw] -> [C, O, kh, kw], with each kernel rotated by 180 degrees.
template <class T>
void flip_kernels(const ConvShape& s, const T* w, T* to) {
  const i64 area = s.kernel_height * s.kernel_width;
  for (i64 c = 0; c < s.channels; ++c)
    for (i64 o = 0; o < s.outputs; ++o) {
      const T* from = w + (o * s.channels + c) * area;
      for (i64 k = 0; k < area; ++k) *to++ = from[area - 1 - k];
    }
}

}  // namespace

namespace {

// Pieces of work that run at the same time, each with a separate room in the workspace.
i64 rooms_of(i64 pieces, i64 work) { return workers(pieces, work); }

// Elements of a room: a product with the im2col matrix, and the matrix.
i64 room_of(const Im2col& r, i64 outputs) { return rounded(outputs * r.ld() + r.elements()); }

i64 work_of_images(const Im2col& r, i64 groups, i64 images, i64 outputs) {
  return work_of(groups, images, outputs, r.channels * r.kh * r.kw, r.length());
}

}  // namespace

i64 conv2d_workspace(const ConvShape& s, i64 groups, i64 images) {
  if (groups * images * s.out_image() == 0) return 0;
  const Im2col r = im2col_of_image(s);
  return rooms_of(groups * images, work_of_images(r, groups, images, s.outputs)) * room_of(r, s.outputs);
}

template <class T>
void conv2d(const ConvShape& s, const ConvGroups& g, const T* x, const T* w, const T* bias,
            std::span<const i64> bias_of, T* y, std::span<T> workspace) {
  const i64 groups = static_cast<i64>(g.a_of.size());
  if (groups * g.images * s.out_image() == 0) return;
  const Im2col r = im2col_of_image(s);
  const std::vector<i64> offset = r.offset();
  const i64 ld = r.ld(), taps = s.taps(), size = room_of(r, s.outputs);
  const i64 rooms = static_cast<i64>(workspace.size()) / size;
  for_each_in_rooms(
      rooms, groups * g.images, work_of_images(r, groups, g.images, s.outputs), [&](i64 at, i64 room) {
        const i64 i = at / g.images, n = at % g.images;
        T* out = workspace.data() + room * size;
        T* image = out + s.outputs * ld;
        im2col(s, r, x + (g.a_of[i] * g.images + n) * s.image(), image);
        REDCO_ISA_CALL(gemm_im2col(s.outputs, r.length(), taps, w + g.b_of[i] * s.outputs * taps, image,
                                   offset.data(), out, ld));
        crop(r, s.outputs, out, ld, bias ? bias + bias_of[i] * s.outputs : nullptr, y + at * s.out_image());
      });
}

i64 conv2d_input_gradient_workspace(const ConvShape& s, i64 groups, i64 images) {
  if (groups * images * s.image() == 0) return 0;
  const Im2col r = im2col_of_gradient(s);
  return groups * s.outputs * s.taps() +
         rooms_of(groups * images, work_of_images(r, groups, images, s.channels)) * room_of(r, s.channels);
}

// A convolution of dy, spread by the strides, with the rotated kernels.
template <class T>
void conv2d_input_gradient(const ConvShape& s, const ConvGroups& g, const T* dy, const T* w, T* dx,
                           std::span<T> workspace) {
  const i64 groups = static_cast<i64>(g.a_of.size());
  if (groups * g.images * s.image() == 0) return;
  const Im2col r = im2col_of_gradient(s);
  const std::vector<i64> offset = r.offset();
  const i64 ld = r.ld(), taps = s.outputs * s.kernel_height * s.kernel_width;
  const i64 weight = s.channels * taps, size = room_of(r, s.channels);
  T *flipped = workspace.data(), *room_memory = flipped + groups * weight;
  const i64 rooms = (static_cast<i64>(workspace.size()) - groups * weight) / size;
  for_each(groups, groups * weight,
           [&](i64 i) { flip_kernels(s, w + g.b_of[i] * weight, flipped + i * weight); });
  for_each_in_rooms(
      rooms, groups * g.images, work_of_images(r, groups, g.images, s.channels), [&](i64 at, i64 room) {
        const i64 i = at / g.images, n = at % g.images;
        T* out = room_memory + room * size;
        T* image = out + s.channels * ld;
        copy_padded(dy + (g.a_of[i] * g.images + n) * s.out_image(), s.outputs, s.out_height(), s.out_width(),
                    s.kernel_height - 1 - s.padding[0], s.kernel_width - 1 - s.padding[1], s.stride[0],
                    s.stride[1], image, r.rows + s.kernel_height - 1, r.pitch());
        REDCO_ISA_CALL(
            gemm_im2col(s.channels, r.length(), taps, flipped + i * weight, image, offset.data(), out, ld));
        crop<T>(r, s.channels, out, ld, nullptr, dx + at * s.image());
      });
}

namespace {

// Number of images summed in one piece of work: larger for more images, so that there are few partial sums.
i64 chunk_of(i64 images) {
  constexpr i64 kLeast = 8, kPieces = 16;
  return std::max(kLeast, ceil_div(images, kPieces));
}

// Images whose matrices are made together.
i64 images_at_once(const ConvShape& s, const Im2col& r, i64 chunk) {
  return std::clamp<i64>((i64{1} << 20) / (r.elements() + s.outputs * r.ld()), 1, chunk);
}

// Elements of a room: the matrices and gradients of some images, and the sum of theirs.
i64 gradient_room(const ConvShape& s, const Im2col& r, i64 chunk) {
  return images_at_once(s, r, chunk) * room_of(r, s.outputs) + rounded(s.outputs * s.taps());
}

}  // namespace

i64 conv2d_weight_gradient_workspace(const ConvShape& s, i64 groups, i64 images) {
  if (groups * images * s.out_image() * s.outputs * s.taps() == 0) return 0;
  const Im2col r = im2col_of_image(s);
  const i64 chunk = chunk_of(images), chunks = ceil_div(images, chunk);
  return (chunks > 1 ? groups * chunks * s.outputs * s.taps() : 0) +
         rooms_of(groups * chunks, work_of_images(r, groups, images, s.outputs)) * gradient_room(s, r, chunk);
}

template <class T>
void conv2d_weight_gradient(const ConvShape& s, const ConvGroups& g, const T* dy, const T* x, T* dw,
                            std::span<T> workspace) {
  const i64 chunk = chunk_of(g.images);
  const i64 groups = static_cast<i64>(g.a_of.size()), weight = s.outputs * s.taps();
  const i64 chunks = s.out_image() == 0 ? 0 : ceil_div(g.images, chunk);
  if (groups * weight == 0) return;
  if (chunks == 0) return std::fill(dw, dw + groups * weight, T(0));
  const Im2col r = im2col_of_image(s);
  const std::vector<i64> offset = r.offset();
  const i64 ld = r.ld(), area = s.out_height() * s.out_width();
  const i64 at_once = images_at_once(s, r, chunk), size = gradient_room(s, r, chunk);
  const i64 sums = chunks > 1 ? groups * chunks * weight : 0;
  T* room_memory = workspace.data() + sums;
  const i64 rooms = (static_cast<i64>(workspace.size()) - sums) / size;
  const i64 work = work_of_images(r, groups, g.images, s.outputs);
  for_each_in_rooms(rooms, groups * chunks, work, [&](i64 at, i64 room) {
    const i64 i = at / chunks, first = at % chunks * chunk, last = std::min(g.images, first + chunk);
    T* sum = (chunks > 1 ? workspace.data() : dw) + at * weight;
    T* grad = room_memory + room * size;
    T* more = grad + at_once * s.outputs * ld;
    T* image = more + rounded(weight);
    for (i64 begin = first; begin < last; begin += at_once) {
      const i64 n = std::min(at_once, last - begin);
      for (i64 k = 0; k < n; ++k) {
        im2col(s, r, x + (g.b_of[i] * g.images + begin + k) * s.image(), image + k * r.elements());
        const T* from = dy + (g.a_of[i] * g.images + begin + k) * s.out_image();
        for (i64 o = 0; o < s.outputs; ++o) {
          T* to = grad + (k * s.outputs + o) * ld;
          std::fill(to, to + ld, T(0));
          for (i64 y = 0; y < r.rows; ++y)
            std::copy_n(from + o * area + y * r.columns, r.columns, to + y * r.pitch());
        }
      }
      T* to = begin == first ? sum : more;
      REDCO_ISA_CALL(gemm_im2col_transposed(s.outputs, r.length(), s.taps(), n, grad, ld, s.outputs * ld,
                                            image, r.elements(), offset.data(), to));
      if (to != sum)
        for (i64 k = 0; k < weight; ++k) sum[k] += to[k];
    }
  });
  if (chunks == 1) return;
  for_each(groups, groups * chunks * weight, [&](i64 i) {
    T* to = dw + i * weight;
    std::copy_n(workspace.data() + i * chunks * weight, weight, to);
    for (i64 c = 1; c < chunks; ++c) {
      const T* from = workspace.data() + (i * chunks + c) * weight;
      for (i64 k = 0; k < weight; ++k) to[k] += from[k];
    }
  });
}

#define INSTANTIATE(T)                                                                              \
  template void conv2d(const ConvShape&, const ConvGroups&, const T*, const T*, const T*,           \
                       std::span<const i64>, T*, std::span<T>);                                     \
  template void conv2d_input_gradient(const ConvShape&, const ConvGroups&, const T*, const T*, T*,  \
                                      std::span<T>);                                                \
  template void conv2d_weight_gradient(const ConvShape&, const ConvGroups&, const T*, const T*, T*, \
                                       std::span<T>);
INSTANTIATE(float)
INSTANTIATE(double)
#undef INSTANTIATE

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

}  // namespace

void add_convolutions(Kernels& t) {
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
}

}  // namespace redco::kernels
