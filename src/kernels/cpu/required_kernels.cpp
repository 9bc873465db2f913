#include <algorithm>

#include "kernels/cpu/device.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/lists.h"
#include "kernels/cpu/mixed.h"
#include "kernels/cpu/nn.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"

namespace redco::kernels {

namespace {

template <class From, class To>
void cast_elements(const View& x, const View& y) {
  const From* const from = pointer<From>(x);
  To* const to = pointer<To>(y);
  for_blocks(x.numel(), [&](i64 i, i64 end) {
    for (; i < end; ++i) to[i] = static_cast<To>(from[i]);
  });
}

template <class From>
void cast_from(const View& x, const View& y) {
  if (y.dtype == DType::i32) return cast_elements<From, i32>(x, y);
  visit_float(y.dtype, [&](auto zero) { cast_elements<From, decltype(zero)>(x, y); });
}

// Between bf16 and a floating type; fp64 is rounded to fp32 first.
void cast_to_bf16(const View& x, const View& y) {
  if (x.dtype == DType::f32) return to_bf16(pointer<float>(x), pointer<bf16>(y), x.numel());
  const double* const from = pointer<double>(x);
  bf16* const to = pointer<bf16>(y);
  for (i64 i = 0; i < x.numel(); ++i) {
    const float value = static_cast<float>(from[i]);
    to_bf16(&value, to + i, 1);
  }
}
void cast_from_bf16(const View& x, const View& y) {
  if (y.dtype == DType::f32) return from_bf16(pointer<bf16>(x), pointer<float>(y), x.numel());
  const bf16* const from = pointer<bf16>(x);
  double* const to = pointer<double>(y);
  for (i64 i = 0; i < x.numel(); ++i) {
    float value;
    from_bf16(from + i, &value, 1);
    to[i] = value;
  }
}

// Rows of the last dim between f32 and a grouped type.
void cast_to_groups(const View& x, const View& y) {
  REDCO_CHECK(x.dtype == DType::f32, "a cast from {} to {}", name_of(x.dtype), name_of(y.dtype));
  visit_groups(y.dtype, [&](auto zero) {
    using G = decltype(zero);
    to_groups<G>(pointer<float>(x), pointer<G>(y), y.leading(), y.last());
  });
}
void cast_from_groups(const View& x, const View& y) {
  REDCO_CHECK(y.dtype == DType::f32, "a cast from {} to {}", name_of(x.dtype), name_of(y.dtype));
  visit_groups(x.dtype, [&](auto zero) {
    using G = decltype(zero);
    from_groups<G>(pointer<G>(x), pointer<float>(y), x.leading(), x.last());
  });
}

// Elements of a grouped type as bytes; other views are returned unchanged. Groups are not cut.
View as_bytes(const View& v) {
  if (!is_grouped(v.dtype)) return v;
  View bytes = v;
  bytes.strides = v.steps();
  for (i64& step : bytes.strides) step = bytes_of(v.dtype, step);
  bytes.strides.back() = 1;
  bytes.shape.back() = bytes_of(v.dtype, groups_in(v.last()) * kGroup);
  return bytes;
}

// Calls f(batch, a, a_stride, b, b_stride, y) for runs of matrices at equal distances.
template <class T, class F>
void for_matrix_runs(const View& a, const View& b, const View& y, const F& f) {
  const int batch = y.rank() - 2;
  const Strides sa = a.steps(), sb = b.steps();
  i64 count = 1;
  for (int d = 0; d < batch; ++d) count *= y.shape[d];
  if (count == 0) return;
  // The innermost dims of uniform stride become one batched call.
  i64 run = 1, stride_a = 0, stride_b = 0;
  int outer_dims = batch;
  while (outer_dims > 0) {
    const int d = outer_dims - 1;
    const i64 size = y.shape[d];
    if (run > 1 && size > 1 && (sa[d] != stride_a * run || sb[d] != stride_b * run)) break;
    if (run == 1 && size > 1) {
      stride_a = sa[d];
      stride_b = sb[d];
    }
    run *= size;
    --outer_dims;
  }
  const i64 matrix = y.shape[batch] * y.shape[batch + 1];
  for (i64 o = 0; o < count / run; ++o) {
    i64 rest = o, at_a = 0, at_b = 0;
    for (int d = outer_dims - 1; d >= 0; --d) {
      const i64 i = rest % y.shape[d];
      rest /= y.shape[d];
      at_a += i * sa[d];
      at_b += i * sb[d];
    }
    f(run, pointer<T>(a) + at_a, stride_a, pointer<T>(b) + at_b, stride_b, pointer<T>(y) + o * run * matrix);
  }
}

void matmul(const View& a, const bool& trans_a, const View& b, const bool& trans_b, const View& y) {
  const i64 m = y.shape[y.rank() - 2], n = y.last();
  const i64 lda = a.last(), ldb = b.last(), k = trans_a ? a.shape[a.rank() - 2] : a.last();
  visit_float(y.dtype, [&](auto zero) {
    using T = decltype(zero);
    for_matrix_runs<T>(a, b, y, [&](i64 run, const T* pa, i64 stride_a, const T* pb, i64 stride_b, T* py) {
      gemm_batch<T>(run, trans_a, trans_b, m, n, k, 1, pa, lda, stride_a, pb, ldb, stride_b, 0, py, n, m * n);
    });
  });
}

SmallVector<bool, 8> flags_of(const View& x, u32 over) {
  SmallVector<bool, 8> flags(x.shape.size());
  for (std::size_t d = 0; d < flags.size(); ++d) flags[d] = (over >> d & 1) != 0;
  return flags;
}

}  // namespace

void add_required_kernels(Kernels& t) {
  t.takes_bf16 = true;
  t.fill.run = [](const View& x, const double& value) {
    if (x.dtype == DType::i32) return fill<i32>(pointer<i32>(x), static_cast<i32>(value), x.numel());
    if (x.dtype == DType::bf16) {
      const float wide = static_cast<float>(value);
      bf16 stored;
      to_bf16(&wide, &stored, 1);
      return fill<bf16>(pointer<bf16>(x), stored, x.numel());
    }
    if (is_grouped(x.dtype))
      return visit_groups(x.dtype, [&](auto zero) {
        using G = decltype(zero);
        const std::vector<float> wide(kGroup, static_cast<float>(value));
        G group;
        to_groups(wide.data(), &group, 1, kGroup);
        fill<G>(pointer<G>(x), group, x.leading() * groups_in(x.last()));
      });
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      fill<T>(pointer<T>(x), static_cast<T>(value), x.numel());
    });
  };
  t.copy.run = [](const View& x, const View& y) {
    const View from = as_bytes(x), to = as_bytes(y);
    copy_strided(pointer<void>(x), from.steps(), pointer<void>(y), to.steps(), to.shape,
                 is_grouped(x.dtype) ? 1 : size_of(x.dtype));
  };
  t.cast.run = [](const View& x, const View& y) {
    if (is_grouped(y.dtype)) return cast_to_groups(x, y);
    if (is_grouped(x.dtype)) return cast_from_groups(x, y);
    if (y.dtype == DType::bf16) return cast_to_bf16(x, y);
    if (x.dtype == DType::bf16) return cast_from_bf16(x, y);
    if (x.dtype == DType::i32) return cast_from<i32>(x, y);
    visit_float(x.dtype, [&](auto zero) { cast_from<decltype(zero)>(x, y); });
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
  t.unary.run = [](const Unary& op, const View& x, const View& y) {
    if (x.dtype == DType::f64) return unary(op, pointer<double>(x), pointer<double>(y), x.numel());
    for_f32_pieces<1, 1>({x}, {y},
                         [&](const auto& in, const auto& out, i64 n) { unary(op, in[0], out[0], n); });
  };
  t.binary.run = [](const Binary& op, const View& a, const View& b, const View& y) {
    if (a.dtype == DType::bf16 || b.dtype == DType::bf16 || y.dtype == DType::bf16)
      return for_f32_pieces<2, 1>({a, b}, {y}, [&](const auto& in, const auto& out, i64 n) {
        const std::array<i64, 1> shape = {n}, step = {1};
        binary<float>(op, in[0], step, in[1], step, out[0], shape);
      });
    visit_float(y.dtype, [&](auto zero) {
      using T = decltype(zero);
      binary<T>(op, pointer<T>(a), a.steps(), pointer<T>(b), b.steps(), pointer<T>(y), y.shape);
    });
  };
  t.affine.run = [](const View& x, const View& y, const double& mul, const double& add) {
    if (x.dtype == DType::f64) return affine(pointer<double>(x), pointer<double>(y), mul, add, x.numel());
    for_f32_pieces<1, 1>({x}, {y}, [&](const auto& in, const auto& out, i64 n) {
      affine(in[0], out[0], static_cast<float>(mul), static_cast<float>(add), n);
    });
  };
  t.axpy.run = [](const double& a, const View& x, const View& y) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      axpy<T>(static_cast<T>(a), pointer<T>(x), pointer<T>(y), x.numel());
    });
  };
  t.sum.run = [](const View& x, const u32& over, const View& y, const View& workspace) {
    visit_activation(x.dtype, [&](auto zero, auto element) {
      reduce_sum(pointer<decltype(element)>(x), x.shape, flags_of(x, over), pointer<decltype(zero)>(y),
                 pointer<double>(workspace));
    });
  };
  t.sum_workspace = [](const View& x, u32 over) { return reduce_workspace(x.shape, flags_of(x, over)); };
  t.max_last.run = [](const View& x, const View& y) {
    visit_activation(x.dtype, [&](auto zero, auto element) {
      row_max(pointer<decltype(element)>(x), pointer<decltype(zero)>(y), y.numel(), x.last());
    });
  };
  t.sum_squares.run = [](const Views& x, const View& y, const View& workspace) {
    sum_squares(x, pointer<double>(y), pointer<double>(workspace));
  };
  t.sum_squares_workspace = sum_squares_workspace;
  t.matmul.run = matmul;
  t.gather_rows.run = [](const View& table, const i64& first, const View& ids, const View& y) {
    if (is_grouped(y.dtype))
      return visit_groups(y.dtype, [&](auto zero) {
        using G = decltype(zero);
        embedding<G>(pointer<G>(table), first, table.shape[0], pointer<i32>(ids), pointer<G>(y), ids.numel(),
                     groups_in(y.last()));
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
  t.adamw.run = adamw;
  t.sgd.run = sgd;
  t.average.run = [](const double& rate, const Views& x, const Views& y) { average(rate, x, y); };
  t.round_weights.run = round_weights;
}

}  // namespace redco::kernels
