#include "kernels/cpu/attention.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/experts.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/groups.h"
#include "kernels/cpu/nn.h"
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

AttentionArgs args_of(const Attention& a, const View& mask, const View& bias) {
  AttentionArgs out;
  out.scale = a.scale;
  out.softcap = a.softcap;
  out.causal = a.causal;
  out.window = a.window;
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
  t.layer_norm.run = [](const View& x, const View& w, const View& b, const double& eps, const View& y,
                        const View& mean, const View& rstd) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      layer_norm<T>(pointer<T>(x), pointer<T>(w), pointer<T>(b), static_cast<T>(eps), pointer<T>(y),
                    pointer<T>(mean), pointer<T>(rstd), x.leading(), x.last());
    });
  };
  t.layer_norm_backward.run = [](const View& x, const View& w, const View& mean, const View& rstd,
                                 const View& g, const View& dx, const View& dw, const View& db,
                                 const View& workspace) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      layer_norm_backward<T>(pointer<T>(x), pointer<T>(w), pointer<T>(mean), pointer<T>(rstd), pointer<T>(g),
                             pointer<T>(dx), pointer<T>(dw), pointer<T>(db), x.leading(), x.last(),
                             pointer<T>(workspace));
    });
  };
  t.rms_norm.run = [](const View& x, const View& w, const double& eps, const View& y, const View& rstd) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      rms_norm<T>(pointer<T>(x), pointer<T>(w), static_cast<T>(eps), pointer<T>(y), pointer<T>(rstd),
                  x.leading(), x.last());
    });
  };
  t.rms_norm_backward.run = [](const View& x, const View& w, const View& rstd, const View& g, const View& dx,
                               const View& dw, const View& workspace) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      rms_norm_backward<T>(pointer<T>(x), pointer<T>(w), pointer<T>(rstd), pointer<T>(g), pointer<T>(dx),
                           pointer<T>(dw), x.leading(), x.last(), pointer<T>(workspace));
    });
  };
  t.norm_backward_workspace = norm_backward_workspace;
}

void add_attention(Kernels& t) {
  t.attention.run = [](const Attention& a, const View& q, const View& k, const View& v, const View& mask,
                       const View& bias, const View& out, const View& lse, const View& workspace) {
    visit_float(q.dtype, [&](auto zero) {
      using T = decltype(zero);
      const auto run = [&](auto stored) {
        using KV = decltype(stored);
        attention<T, KV>(shape_of(a, q, k), args_of(a, mask, bias), pointer<T>(q), pointer<KV>(k),
                         pointer<KV>(v), pointer<T>(out), pointer<T>(lse), pointer<T>(workspace));
      };
      if (k.dtype == DType::bf16) return run(bf16{});
      run(T{});
    });
  };
  t.attention_workspace = [](const Attention& a, const View& q, const View& k) {
    return attention_workspace(shape_of(a, q, k), args_of(a, {}, {}));
  };
  t.attention_backward.run = [](const Attention& a, const View& q, const View& k, const View& v,
                                const View& out, const View& lse, const View& g, const View& mask,
                                const View& bias, const View& dq, const View& dk, const View& dv,
                                const View& dbias, const View& workspace) {
    visit_float(q.dtype, [&](auto zero) {
      using T = decltype(zero);
      attention_backward<T>(shape_of(a, q, k), args_of(a, mask, bias), pointer<T>(q), pointer<T>(k),
                            pointer<T>(v), pointer<T>(out), pointer<T>(lse), pointer<T>(g), pointer<T>(dq),
                            pointer<T>(dk), pointer<T>(dv), pointer<T>(dbias), pointer<T>(workspace));
    });
  };
  t.attention_backward_workspace = [](const Attention& a, const View& q, const View& k) {
    return attention_backward_workspace(shape_of(a, q, k));
  };
  t.rope.run = [](const Rope& r, const View& x, const View& positions, const View& y) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      rope<T>(pointer<T>(x), pointer<i32>(positions), r.inv_freq->data(),
              2 * static_cast<i64>(r.inv_freq->size()), r.interleaved, r.sign, r.attention_factor,
              pointer<T>(y), x.shape[0], x.shape[1], x.shape[2], x.shape[3]);
    });
  };
}

void add_cross_entropy(Kernels& t) {
  t.sum_exp_and_target.run = [](const View& x, const View& max, const View& ids, const i64& first,
                                const View& sums) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      const i64 R = ids.numel();
      sum_exp_and_target<T>(pointer<T>(x), pointer<T>(max), pointer<i32>(ids), first, pointer<T>(sums),
                            pointer<T>(sums) + R, R, x.last());
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
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      cross_entropy_backward<T>(pointer<T>(x), pointer<T>(lse), pointer<i32>(ids), first, pointer<T>(g),
                                pointer<T>(dx), ids.numel(), x.last());
    });
  };
}

void add_experts(Kernels& t) {
  t.experts.run = [](const MixtureOfExperts& m, const View& x, const View& weights, const View& chosen,
                     const View& gate, const View& up, const View& down, const View& hidden,
                     const View& workspace, const View& y) {
    if (is_storage_type(gate.dtype))
      return visit_stored(gate.dtype, [&](auto zero) {
        using S = decltype(zero);
        const Experts<float, S> e = experts_of<float, S>(m, x, weights, chosen, gate, up, down, hidden);
        const i64 own = experts_scratch(e.R, e.C, e.I, hidden.present, false);
        float* const room = pointer<float>(workspace);
        experts<float, S>(e, room, {room + own, static_cast<std::size_t>(workspace.numel() - own)},
                          pointer<float>(y));
      });
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      experts<T>(experts_of<T>(m, x, weights, chosen, gate, up, down, hidden), pointer<T>(workspace), {},
                 pointer<T>(y));
    });
  };
  t.experts_backward.run = [](const MixtureOfExperts& m, const View& x, const View& weights,
                              const View& chosen, const View& gate, const View& up, const View& down,
                              const View& hidden, const View& g, const View& workspace, const View& dx,
                              const View& dweights, const View& dgate, const View& dup, const View& ddown) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      experts_backward<T>(
          experts_of<T>(m, x, weights, chosen, gate, up, down, hidden), pointer<T>(g), pointer<T>(workspace),
          {pointer<T>(dx), pointer<T>(dweights), pointer<T>(dgate), pointer<T>(dup), pointer<T>(ddown)});
    });
  };
  t.experts_workspace = experts_scratch;
}

}  // namespace

void add_fused_kernels(Kernels& t) {
  t.stored_linear.run = [](const View& x, const View& w, const View& y, const View& workspace) {
    visit_stored(w.dtype, [&](auto zero) {
      using S = decltype(zero);
      stored_gemm<S>(x.leading(), w.shape[0], w.shape[1], pointer<float>(x), pointer<S>(w), pointer<float>(y),
                     {pointer<float>(workspace), static_cast<std::size_t>(workspace.numel())});
    });
  };
  t.stored_linear_workspace = stored_gemm_workspace;
  t.unary_backward.run = [](const Unary& op, const View& x, const View& g, const View& dx) {
    visit_float(x.dtype, [&](auto zero) {
      using T = decltype(zero);
      unary_backward<T>(op, pointer<T>(x), pointer<T>(g), pointer<T>(dx), x.numel());
    });
  };
  add_norms(t);
  add_attention(t);
  add_cross_entropy(t);
  add_experts(t);
}

}  // namespace redco::kernels
