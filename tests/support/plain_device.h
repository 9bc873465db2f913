// A plain device: the kernels that every device must have, on one thread, written from the comments of
// kernels/table.h. It shows what docs/add_a_device.md asks for, and tests that this is enough. It has no
// grouped types, and takes no activations in bf16.
//
// Elements are read and written as double, so sums are exact enough for any order.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "kernels/native.h"
#include "kernels/square_sum.h"
#include "kernels/table.h"

namespace redco::testing {

namespace plain {

template <class T>
T* at(const View& v) {
  return reinterpret_cast<T*>(kernels::Native::address(v.data));
}

// Calls f(index in memory of each operand) for all indices of `shape`.
template <class F>
void for_all(const Shape& shape, const std::vector<Strides>& steps, const F& f) {
  const i64 n = numel(shape);
  std::vector<i64> places(steps.size());
  for (i64 i = 0; i < n; ++i) {
    std::fill(places.begin(), places.end(), 0);
    i64 rest = i;
    for (int d = static_cast<int>(shape.size()) - 1; d >= 0; --d) {
      for (std::size_t k = 0; k < steps.size(); ++k) places[k] += rest % shape[d] * steps[k][d];
      rest /= shape[d];
    }
    f(i, places);
  }
}

inline float wide(bf16 x) {
  const u32 bits = static_cast<u32>(x.bits) << 16;
  float f;
  std::memcpy(&f, &bits, 4);
  return f;
}
inline bf16 narrow(float f) {
  u32 bits;
  std::memcpy(&bits, &f, 4);
  if (std::isnan(f)) return {static_cast<std::uint16_t>((bits >> 16) | 64)};
  return {static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}

inline double load(const View& v, i64 i) {
  switch (v.dtype) {
    case DType::f64:
      return at<double>(v)[i];
    case DType::i32:
      return at<i32>(v)[i];
    case DType::bf16:
      return wide(at<bf16>(v)[i]);
    default:
      return at<float>(v)[i];
  }
}
inline void store(const View& v, i64 i, double x) {
  switch (v.dtype) {
    case DType::f64:
      at<double>(v)[i] = x;
      break;
    case DType::i32:
      at<i32>(v)[i] = static_cast<i32>(x);
      break;
    case DType::bf16:
      at<bf16>(v)[i] = narrow(static_cast<float>(x));
      break;
    default:
      at<float>(v)[i] = static_cast<float>(x);
  }
}

inline double apply(kernels::Unary op, double x) {
  using U = kernels::Unary;
  switch (op) {
    case U::neg:
      return -x;
    case U::abs:
      return std::fabs(x);
    case U::sign:
      return std::isnan(x) ? x : (x > 0) - (x < 0);
    case U::exp:
      return std::exp(x);
    case U::log:
      return std::log(x);
    case U::sqrt:
      return std::sqrt(x);
    case U::rsqrt:
      return 1 / std::sqrt(x);
    case U::reciprocal:
      return 1 / x;
    case U::square:
      return x * x;
    case U::sin:
      return std::sin(x);
    case U::cos:
      return std::cos(x);
    case U::tanh:
      return std::tanh(x);
    case U::sigmoid:
      return 1 / (1 + std::exp(-x));
    case U::erf:
      return std::erf(x);
    case U::relu:
      return std::isnan(x) ? x : std::max(x, 0.0);
    case U::step:
      return std::isnan(x) ? x : x > 0;
    case U::gelu:
      return x * 0.5 * std::erfc(-x * M_SQRT1_2);
    case U::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case U::gelu_quick:
      return x / (1 + std::exp(-1.702 * x));
    case U::silu:
      return x / (1 + std::exp(-x));
    case U::softplus:
      return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
  }
  return 0;
}
inline double apply(kernels::Binary op, double a, double b) {
  using B = kernels::Binary;
  switch (op) {
    case B::add:
      return a + b;
    case B::sub:
      return a - b;
    case B::mul:
      return a * b;
    case B::div:
      return a / b;
    case B::max:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::max(a, b);
    case B::min:
      return std::isnan(a) ? a : std::isnan(b) ? b : std::min(a, b);
    case B::eq:
      return a == b;
    case B::lt:
      return a < b;
    case B::le:
      return a <= b;
  }
  return 0;
}

// Philox4x32-10.
struct Words {
  u32 w[4];
};
inline Words philox(u64 key, u32 c0, u32 c1, u32 c2, u32 c3) {
  u32 k0 = static_cast<u32>(key), k1 = static_cast<u32>(key >> 32);
  for (int r = 0; r < 10; ++r) {
    const u64 p0 = u64{0xD2511F53} * c0, p1 = u64{0xCD9E8D57} * c2;
    const u32 n0 = static_cast<u32>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<u32>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<u32>(p1);
    c3 = static_cast<u32>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}
template <class F>
void for_draws(u64 key, const kernels::Block4& b, const F& f) {
  i64 i = 0;
  for (i64 c0 = 0; c0 < b.size[0]; ++c0)
    for (i64 c1 = 0; c1 < b.size[1]; ++c1)
      for (i64 c2 = 0; c2 < b.size[2]; ++c2)
        for (i64 c3 = 0; c3 < b.size[3]; ++c3)
          f(i++, philox(key, static_cast<u32>(b.offset[0] + c0), static_cast<u32>(b.offset[1] + c1),
                        static_cast<u32>(b.offset[2] + c2), static_cast<u32>(b.offset[3] + c3)));
}

inline Device make() {
  Device d;
  d.name = "the plain device";
  d.reserve = [](i64* bytes) {
    *bytes = std::min<i64>(*bytes, i64{1} << 30);
    return kernels::Native::pointer(std::aligned_alloc(4096, static_cast<std::size_t>(*bytes)));
  };
  d.release = [](const DevicePtr& p, i64) { std::free(kernels::Native::address(p)); };
  d.write = [](const void* from, const DevicePtr& to, i64 n) {
    std::memcpy(kernels::Native::address(to), from, static_cast<std::size_t>(n));
  };
  d.read = [](const DevicePtr& from, void* to, i64 n) {
    std::memcpy(to, kernels::Native::address(from), static_cast<std::size_t>(n));
  };
  Kernels& t = d.kernels;
  t.fill.run = [](const View& x, const double& value) {
    for (i64 i = 0; i < x.numel(); ++i) store(x, i, value);
  };
  t.copy.run = [](const View& x, const View& y) {
    const i64 size = size_of(x.dtype);
    for_all(y.shape, {x.steps(), y.steps()}, [&](i64, const std::vector<i64>& at_) {
      std::memcpy(at<char>(y) + at_[1] * size, at<char>(x) + at_[0] * size, static_cast<std::size_t>(size));
    });
  };
  t.cast.run = [](const View& x, const View& y) {
    for (i64 i = 0; i < x.numel(); ++i) store(y, i, load(x, i));
  };
  t.replace_id.run = [](const View& x, const i64& id, const i64& by, const View& y) {
    for (i64 i = 0; i < x.numel(); ++i)
      at<i32>(y)[i] = at<i32>(x)[i] == id ? static_cast<i32>(by) : at<i32>(x)[i];
  };
  t.check_ids.run = [](const View& ids, const kernels::IdRange& range, const View& found) {
    for (i64 i = 0; i < ids.numel(); ++i) {
      const i32 id = at<i32>(ids)[i];
      if ((id >= range.least && id < range.end) || id == range.ignored || at<i32>(found)[0] != 0) continue;
      at<i32>(found)[0] = 1 + static_cast<i32>(range.use);
      at<i32>(found)[1] = id;
      at<i32>(found)[2] = static_cast<i32>(range.end);
    }
  };
  t.unary.run = [](const kernels::Unary& op, const View& x, const View& y) {
    for (i64 i = 0; i < x.numel(); ++i) store(y, i, apply(op, load(x, i)));
  };
  t.binary.run = [](const kernels::Binary& op, const View& a, const View& b, const View& y) {
    for_all(y.shape, {a.steps(), b.steps()}, [&](i64 i, const std::vector<i64>& at_) {
      store(y, i, apply(op, load(a, at_[0]), load(b, at_[1])));
    });
  };
  t.affine.run = [](const View& x, const View& y, const double& mul, const double& add) {
    for (i64 i = 0; i < x.numel(); ++i) store(y, i, mul * load(x, i) + add);
  };
  t.axpy.run = [](const double& a, const View& x, const View& y) {
    for (i64 i = 0; i < x.numel(); ++i) store(y, i, load(y, i) + a * load(x, i));
  };
  t.sum.run = [](const View& x, const u32& over, const View& y, const View&) {
    std::vector<double> sums(static_cast<std::size_t>(y.numel()));
    Strides to = row_major(y.shape);
    for (int k = 0; k < x.rank(); ++k)
      if (over >> k & 1) to[k] = 0;
    for_all(x.shape, {x.steps(), to},
            [&](i64, const std::vector<i64>& at_) { sums[at_[1]] += load(x, at_[0]); });
    for (std::size_t i = 0; i < sums.size(); ++i) store(y, static_cast<i64>(i), sums[i]);
  };
  t.sum_workspace = [](const View&, u32) { return i64{0}; };
  t.max_last.run = [](const View& x, const View& y) {
    for (i64 r = 0; r < y.numel(); ++r) {
      double most = -INFINITY;
      for (i64 i = 0; i < x.last(); ++i) most = apply(kernels::Binary::max, most, load(x, r * x.last() + i));
      store(y, r, most);
    }
  };
  t.sum_squares.run = [](const Views& xs, const View& y, const View&) {
    double* const w = at<double>(y);
    std::fill_n(w, SquareSum::kWords, 0.0);
    for (const View& x : xs)
      for (i64 i = 0; i < x.numel(); ++i) {
        const double v = at<float>(x)[i];
        if (!std::isfinite(v)) {
          w[2 * SquareSum::kBins] = 1;
          continue;
        }
        double rest = v * v;
        for (int b = SquareSum::kBins - 1; b >= 0; --b) {
          const double n = std::floor(rest / SquareSum::unit(b));
          rest -= n * SquareSum::unit(b);
          w[2 * b + 1] += n;
        }
        SquareSum::normalize({w, SquareSum::kWords});
      }
  };
  t.sum_squares_workspace = [](i64) { return i64{0}; };
  t.matmul.run = [](const View& a, const bool& ta, const View& b, const bool& tb, const View& y) {
    const int batch = y.rank() - 2;
    const i64 m = y.shape[batch], n = y.last(), k = ta ? a.shape[batch] : a.last();
    const Strides sa = a.steps(), sb = b.steps();
    const Shape blocks(y.shape.begin(), y.shape.begin() + batch);
    for_all(blocks, {Strides(sa.begin(), sa.begin() + batch), Strides(sb.begin(), sb.begin() + batch)},
            [&](i64 block, const std::vector<i64>& at_) {
              for (i64 i = 0; i < m; ++i)
                for (i64 j = 0; j < n; ++j) {
                  double s = 0;
                  for (i64 l = 0; l < k; ++l)
                    s += load(a, at_[0] + (ta ? l * sa[batch] + i * sa[batch + 1]
                                              : i * sa[batch] + l * sa[batch + 1])) *
                         load(b, at_[1] + (tb ? j * sb[batch] + l * sb[batch + 1]
                                              : l * sb[batch] + j * sb[batch + 1]));
                  store(y, (block * m + i) * n + j, s);
                }
            });
  };
  t.gather_rows.run = [](const View& table, const i64& first, const View& ids, const View& y) {
    const i64 C = y.last();
    for (i64 r = 0; r < ids.numel(); ++r) {
      const i64 id = at<i32>(ids)[r] - first;
      for (i64 c = 0; c < C; ++c)
        store(y, r * C + c, id < 0 || id >= table.shape[0] ? 0 : load(table, id * C + c));
    }
  };
  t.scatter_rows.run = [](const View& g, const View& ids, const i64& first, const View& y) {
    for (i64 i = 0; i < y.numel(); ++i) store(y, i, 0);
    const i64 C = y.last();
    for (i64 r = 0; r < ids.numel(); ++r) {
      const i64 id = at<i32>(ids)[r] - first;
      if (id < 0 || id >= y.shape[0]) continue;
      for (i64 c = 0; c < C; ++c) store(y, id * C + c, load(y, id * C + c) + load(g, r * C + c));
    }
  };
  t.pick.run = [](const View& x, const View& ids, const i64& first, const View& y) {
    for (i64 r = 0; r < y.numel(); ++r) {
      const i64 id = at<i32>(ids)[r] - first;
      store(y, r, id < 0 || id >= x.last() ? 0 : load(x, r * x.last() + id));
    }
  };
  t.unpick.run = [](const View& g, const View& ids, const i64& first, const View& y) {
    for (i64 i = 0; i < y.numel(); ++i) store(y, i, 0);
    for (i64 r = 0; r < g.numel(); ++r) {
      const i64 id = at<i32>(ids)[r] - first;
      if (id >= 0 && id < y.last()) store(y, r * y.last() + id, load(g, r));
    }
  };
  t.uniform.run = [](const u64& key, const kernels::Block4& b, const View& y) {
    for_draws(key, b,
              [&](i64 i, const Words& w) { at<float>(y)[i] = static_cast<float>(w.w[0] >> 8) * 0x1p-24f; });
  };
  t.normal.run = [](const u64& key, const kernels::Block4& b, const View& y) {
    for_draws(key, b, [&](i64 i, const Words& w) {
      const double u = (w.w[0] + 0.5) * 0x1p-32, angle = w.w[1] * (2 * M_PI * 0x1p-32);
      at<float>(y)[i] = static_cast<float>(std::sqrt(-2 * std::log(u)) * std::cos(angle));
    });
  };
  t.dropout.run = [](const double& rate, const u64& key, const kernels::Block4& b, const View& x,
                     const View& y) {
    for_draws(key, b, [&](i64 i, const Words& w) {
      store(y, i, (w.w[0] >> 8) * 0x1p-24 < rate ? 0 : load(x, i) / (1 - rate));
    });
  };
  t.adamw.run = [](const kernels::AdamW& h, const Views& p, const Views& g, const Views& m, const Views& v) {
    for (std::size_t k = 0; k < p.size(); ++k)
      for (i64 i = 0; i < p[k].numel(); ++i) {
        float &pi = at<float>(p[k])[i], &mi = at<float>(m[k])[i], &vi = at<float>(v[k])[i];
        const double gi = h.grad_scale * at<float>(g[k])[i];
        mi = static_cast<float>(h.beta1 * mi + (1 - h.beta1) * gi);
        vi = static_cast<float>(h.beta2 * vi + (1 - h.beta2) * gi * gi);
        pi = static_cast<float>(pi - h.lr * h.weight_decay * pi);
        pi = static_cast<float>(pi - h.lr / h.bias1 * mi / (std::sqrt(vi / h.bias2) + h.eps));
      }
  };
  t.sgd.run = [](const kernels::Sgd& h, const Views& p, const Views& g, const Views& b) {
    for (std::size_t k = 0; k < p.size(); ++k)
      for (i64 i = 0; i < p[k].numel(); ++i) {
        float& pi = at<float>(p[k])[i];
        double step = h.grad_scale * at<float>(g[k])[i] + h.weight_decay * pi;
        if (!b.empty())
          at<float>(b[k])[i] = static_cast<float>(step = h.momentum * at<float>(b[k])[i] + step);
        pi = static_cast<float>(pi - h.lr * step);
      }
  };
  t.average.run = [](const double& rate, const Views& x, const Views& y) {
    for (std::size_t k = 0; k < y.size(); ++k)
      for (i64 i = 0; i < y[k].numel(); ++i)
        store(y[k], i, (1 - rate) * load(y[k], i) + rate * load(x[k], i));
  };
  t.round_weights.run = [](const Views& x, const Views& y) {
    for (std::size_t k = 0; k < x.size(); ++k)
      for (i64 i = 0; i < x[k].numel(); ++i) store(y[k], i, load(x[k], i));
  };
  return d;
}

}  // namespace plain

inline const Device& plain_device() {
  static const Device device = plain::make();
  return device;
}

}  // namespace redco::testing
