#include "kernels/cpu/attention.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/mixed.h"
#include "kernels/cpu/nn.h"
#include "kernels/cpu/products.h"
#include "kernels/cpu/views.h"

namespace redco::kernels {

namespace {

AttentionShape shape_of(const Attention& a, const View& q, const View& k) {
  AttentionShape s{q.shape[0], q.shape[1], a.keys, q.shape[2], k.shape[2], q.shape[3], 0, 0, 0, 0, 0};
  s.q_stride = q.shape[2] * q.shape[3];
  s.k_stride = s.v_stride = k.shape[2] * k.shape[3];
  s.k_batch_stride = s.v_batch_stride = k.shape[1] * k.shape[2] * k.shape[3];
  return s;
}

AttentionArgs args_of(const Attention& a, const View& mask, const View& bias, const View& sinks = {}) {
  AttentionArgs out;
  out.scale = a.scale;
  out.softcap = a.softcap;
  out.causal = a.causal;
  out.window = a.window;
  out.ahead = a.ahead;
  if (a.slopes) out.slopes = a.slopes->data() + a.head_offset;
  if (sinks.present) {
    out.sinks = pointer<void>(sinks);
    out.sinks_B = sinks.shape[0];
  }
  out.key_mask = pointer<i32>(mask);
  if (a.segmented) out.q_segment = out.k_segment = out.key_mask;
  if (bias.present) {
    out.bias = pointer<void>(bias);
    out.bias_B = bias.shape[0];
    out.bias_H = bias.shape[1];
  }
  out.dropout = a.dropout;
  out.dropout_key = a.dropout_key;
  out.batch_offset = a.batch_offset;
  out.head_offset = a.head_offset;
  return out;
}

// The workspace of products, from element `first` on; none of f64.
std::span<float> products_room(const View& workspace, i64 first = 0) {
  if (!workspace.present || workspace.dtype != DType::f32) return {};
  return {pointer<float>(workspace) + first, static_cast<std::size_t>(workspace.numel() - first)};
}

template <class T, class S = T>
Experts<T, S> experts_of(const MixtureOfExperts& m, const View& x, const View& weights, const View& chosen,
                         const View& gate, const View& up, const View& down, const View& hidden) {
  const i64 R = x.leading();
  return {.R = R,
          .C = gate.shape[2],
          .I = gate.shape[1],
          .E = gate.shape[0],
          .x = pointer<T>(x),
          .weights = pointer<T>(weights),
          .chosen = pointer<T>(chosen),
          .gate = pointer<S>(gate),
          .up = pointer<S>(up),
          .down = pointer<S>(down),
          .activation = m.activation,
          .bf16 = m.bf16,
          .hidden = pointer<T>(hidden),
          .hidden_rows = R * m.per_row};
}

void add_norms(Kernels& t) {
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

void add_attention(Kernels& t) {
  t.attention.run = [](const Attention& a, const View& q, const View& k, const View& v, const View& mask,
                       const View& bias, const View& sinks, const View& out, const View& lse,
                       const View& workspace) {
    const auto run = [&](auto zero, auto of_q, auto of_kv) {
      using T = decltype(zero);
      using Q = decltype(of_q);
      using KV = decltype(of_kv);
      attention(shape_of(a, q, k), args_of(a, mask, bias, sinks), pointer<Q>(q), pointer<KV>(k),
                pointer<KV>(v), pointer<Q>(out), pointer<T>(lse), pointer<T>(workspace));
    };
    if (q.dtype == DType::bf16) return run(float{}, bf16{}, bf16{});
    visit_float(q.dtype, [&](auto zero) {
      if (k.dtype == DType::bf16) return run(zero, zero, bf16{});
      run(zero, zero, zero);
    });
  };
  t.attention_workspace = [](const Attention& a, const View& q, const View& k) {
    return attention_workspace(shape_of(a, q, k), args_of(a, {}, {}), q.dtype == DType::bf16,
                               k.dtype == DType::bf16);
  };
  t.attention_backward.run = [](const Attention& a, const View& q, const View& k, const View& v,
                                const View& out, const View& lse, const View& g, const View& mask,
                                const View& bias, const View& sinks, const View& dq, const View& dk,
                                const View& dv, const View& dbias, const View& workspace) {
    visit_activation(q.dtype, [&](auto zero, auto element) {
      using T = decltype(zero);
      using X = decltype(element);
      attention_backward(shape_of(a, q, k), args_of(a, mask, bias, sinks), pointer<X>(q), pointer<X>(k),
                         pointer<X>(v), pointer<X>(out), pointer<T>(lse), pointer<X>(g), pointer<X>(dq),
                         pointer<X>(dk), pointer<X>(dv), pointer<T>(dbias), pointer<T>(workspace));
    });
  };
  t.attention_backward_workspace = [](const Attention& a, const View& q, const View& k) {
    return attention_backward_workspace(shape_of(a, q, k), q.dtype == DType::bf16);
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

void add_cross_entropy(Kernels& t) {
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
}

void add_experts(Kernels& t) {
  t.experts.run = [](const MixtureOfExperts& m, const View& x, const View& weights, const View& chosen,
                     const View& gate, const View& up, const View& down, const View& hidden,
                     const View& workspace, const View& y) {
    const auto run = [&](auto zero, auto element) {
      using T = decltype(zero);
      using S = decltype(element);
      const Experts<T, S> e = experts_of<T, S>(m, x, weights, chosen, gate, up, down, hidden);
      T* const own = pointer<T>(workspace);
      experts<T, S>(e, own, products_room(workspace, experts_scratch(e.R, e.C, e.I, hidden.present, false)),
                    pointer<T>(y));
    };
    if (is_storage_type(gate.dtype)) return visit_stored(gate.dtype, [&](auto zero) { run(float{}, zero); });
    visit_float(x.dtype, [&](auto zero) { run(zero, zero); });
  };
  t.experts_backward.run = [](const MixtureOfExperts& m, const View& x, const View& weights,
                              const View& chosen, const View& gate, const View& up, const View& down,
                              const View& hidden, const View& g, const View& workspace, const View& dx,
                              const View& dweights, const View& dgate, const View& dup, const View& ddown) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      const Experts<T> e = experts_of<T>(m, x, weights, chosen, gate, up, down, hidden);
      experts_backward<T>(
          e, pointer<T>(g), pointer<T>(workspace),
          products_room(workspace, experts_scratch(e.R, e.C, e.I, hidden.present, true)),
          {pointer<T>(dx), pointer<T>(dweights), pointer<T>(dgate), pointer<T>(dup), pointer<T>(ddown)});
    });
  };
  t.experts_workspace = [](const MixtureOfExperts& m, i64 rows, i64 width, i64 inner, DType matrices,
                           bool hidden, bool backward) {
    return experts_workspace(rows, width, inner, matrices, m.bf16, hidden, backward);
  };
}

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

Products linear_products(const View& x, const Views& weights, const Views& u, const Views& v,
                         const Views& y) {
  Products all;
  for (std::size_t i = 0; i < y.size(); ++i) {
    all.push_back(product_into(y[i]));
    all.back().terms.push_back({matrix_of(x), matrix_of(weights[i], true), x.last()});
    if (!u.empty() && u[i].present)
      all.back().terms.push_back({matrix_of(u[i]), matrix_of(v[i], true), u[i].last()});
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

void add_products(Kernels& t) {
  t.linear.run = [](const bool& bf16, const View& x, const Views& weights, const Views& biases,
                    const Views& u, const Views& v, const Views& y, const View& workspace) {
    Products all = linear_products(x, weights, u, v, y);
    if (x.dtype == DType::f64) return run_f64(all, biases);
    for (std::size_t i = 0; i < all.size(); ++i) all[i].bias = pointer<float>(biases[i]);
    products(all, bf16, products_room(workspace));
  };
  t.linear_workspace = [](bool bf16, const View& x, const Views& weights, const Views& u, const Views& v,
                          const Views& y) {
    return x.dtype == DType::f64 ? 0 : products_workspace(linear_products(x, weights, u, v, y), bf16);
  };
  t.linear_input_gradient.run = [](const bool& bf16, const Views& g, const Views& weights, const View& dx,
                                   const View& workspace) {
    const Products all = input_gradient_products(g, weights, dx);
    if (dx.dtype == DType::f64) return run_f64(all);
    products(all, bf16, products_room(workspace));
  };
  t.linear_input_gradient_workspace = [](bool bf16, const Views& g, const Views& weights, const View& dx) {
    return dx.dtype == DType::f64 ? 0 : products_workspace(input_gradient_products(g, weights, dx), bf16);
  };
  t.linear_weight_gradients.run = [](const bool& bf16, const Views& g, const View& x, const Views& dw,
                                     const View& workspace) {
    const Products all = weight_gradient_products(g, x, dw);
    if (x.dtype == DType::f64) return run_f64(all);
    products(all, bf16, products_room(workspace));
  };
  t.linear_weight_gradients_workspace = [](bool bf16, const Views& g, const View& x, const Views& dw) {
    return x.dtype == DType::f64 ? 0 : products_workspace(weight_gradient_products(g, x, dw), bf16);
  };
}

}  // namespace

void add_fused_kernels(Kernels& t) {
  add_products(t);
  t.unary_backward.run = [](const Unary& op, const View& x, const View& g, const View& dx) {
    const auto run = [&](const auto* x, const auto* g, auto* dx, i64 n) {
      saves_output(op) ? unary_backward_of_output(op, x, g, dx, n) : unary_backward(op, x, g, dx, n);
    };
    if (x.dtype == DType::f64)
      return run(pointer<double>(x), pointer<double>(g), pointer<double>(dx), x.numel());
    for_f32_pieces<2, 1>({x, g}, {dx},
                         [&](const auto& in, const auto& out, i64 n) { run(in[0], in[1], out[0], n); });
  };
  t.gated.run = [](const Unary& op, const View& gate, const View& up, const View& y) {
    if (y.dtype == DType::f64)
      return gated(op, pointer<double>(gate), pointer<double>(up), pointer<double>(y), y.numel());
    for_f32_pieces<2, 1>({gate, up}, {y},
                         [&](const auto& in, const auto& out, i64 n) { gated(op, in[0], in[1], out[0], n); });
  };
  t.gated_backward.run = [](const Unary& op, const View& gate, const View& up, const View& g,
                            const View& dgate, const View& dup) {
    if (g.dtype == DType::f64)
      return gated_backward(op, pointer<double>(gate), pointer<double>(up), pointer<double>(g),
                            pointer<double>(dgate), pointer<double>(dup), g.numel());
    for_f32_pieces<3, 2>({gate, up, g}, {dgate, dup}, [&](const auto& in, const auto& out, i64 n) {
      gated_backward(op, in[0], in[1], in[2], out[0], out[1], n);
    });
  };
  add_norms(t);
  add_attention(t);
  add_cross_entropy(t);
  add_experts(t);
}

}  // namespace redco::kernels
