// The products of linear layers and of batches, on views.
#include "kernels/cpu/device.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/products/products.h"
#include "kernels/cpu/views.h"

namespace redco::kernels {
namespace {

Matrix matrix_of(const View& v, bool trans = false) {
  return {.data = pointer<std::byte>(v),
          .type = v.dtype,
          .row = bytes_of(v.dtype, ceil_div(v.last(), group_of(v.dtype)) * group_of(v.dtype)),
          .trans = trans};
}

using Products = SmallVector<Product, 3>;
Product product_into(const View& y) {
  Product p;
  p.m = y.leading();
  p.n = y.last();
  p.y = pointer<void>(y);
  p.type = y.dtype;
  return p;
}

Products linear_products(const View& x, const Views& weights, const Views& y) {
  Products all;
  for (std::size_t i = 0; i < y.size(); ++i) {
    all.push_back(product_into(y[i]));
    all.back().terms.push_back({matrix_of(x), matrix_of(weights[i], true), x.last()});
  }
  return all;
}
Products input_gradient_products(const Views& g, const Views& weights, const View& dx) {
  Products all = {product_into(dx)};
  for (std::size_t i = 0; i < g.size(); ++i)
    all.back().terms.push_back({matrix_of(g[i]), matrix_of(weights[i]), g[i].last()});
  return all;
}
Products weight_gradient_products(const Views& g, const View& x, const Views& dw) {
  Products all;
  for (std::size_t i = 0; i < dw.size(); ++i) {
    all.push_back(product_into(dw[i]));
    all.back().terms.push_back({matrix_of(g[i], true), matrix_of(x), x.leading()});
  }
  return all;
}

// The same in f64, for checks of gradients.
void run_f64(const Products& all, const Views& biases = {}) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Product& p = all[i];
    double* const y = static_cast<double*>(p.y);
    fill(y, 0.0, p.m * p.n);
    const auto stride = [](const Matrix& x) { return x.row / i64{sizeof(double)}; };
    const auto data = [](const Matrix& x) { return reinterpret_cast<const double*>(x.data); };
    for (const Term& t : p.terms)
      gemm<double>(t.a.trans, t.b.trans, p.m, p.n, t.k, 1, data(t.a), stride(t.a), data(t.b), stride(t.b), 1,
                   y, p.n);
    if (biases.empty() || !biases[i].present) continue;
    for (i64 r = 0; r < p.m; ++r) axpy(1.0, pointer<double>(biases[i]), y + r * p.n, p.n);
  }
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

}  // namespace

void add_products(Kernels& t) {
  t.linear.run = [](const bool& bf16, const View& x, const Views& weights, const Views& biases,
                    const Views& y, const View& workspace) {
    Products all = linear_products(x, weights, y);
    if (x.dtype == DType::f64) return run_f64(all, biases);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].bias = pointer<float>(biases[i]);
    products(all, bf16, floats_of(workspace));
  };
  t.linear_workspace = [](bool bf16, const View& x, const Views& weights, const Views& y) {
    return x.dtype == DType::f64 ? 0 : products_workspace(linear_products(x, weights, y), bf16);
  };
  t.linear_input_gradient.run = [](const bool& bf16, const Views& g, const Views& weights, const View& dx,
                                   const View& workspace) {
    const Products all = input_gradient_products(g, weights, dx);
    if (dx.dtype == DType::f64) return run_f64(all);
    products(all, bf16, floats_of(workspace));
  };
  t.linear_input_gradient_workspace = [](bool bf16, const Views& g, const Views& weights, const View& dx) {
    return dx.dtype == DType::f64 ? 0 : products_workspace(input_gradient_products(g, weights, dx), bf16);
  };
  t.linear_weight_gradients.run = [](const bool& bf16, const Views& g, const View& x, const Views& dw,
                                     const View& workspace) {
    const Products all = weight_gradient_products(g, x, dw);
    if (x.dtype == DType::f64) return run_f64(all);
    products(all, bf16, floats_of(workspace));
  };
  t.linear_weight_gradients_workspace = [](bool bf16, const Views& g, const View& x, const Views& dw) {
    return x.dtype == DType::f64 ? 0 : products_workspace(weight_gradient_products(g, x, dw), bf16);
  };
  t.matmul.run = matmul;
}

}  // namespace redco::kernels
