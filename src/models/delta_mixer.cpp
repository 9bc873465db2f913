#include "models/delta_mixer.h"

#include <cmath>

#include "models/recurrent_pass.h"
#include "ops/delta_rule.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

// The rates at which heads forget: evenly spread over (0, 16), where transformers draws them.
Init spread_log_rates(i64 heads) {
  auto rates = std::make_shared<std::vector<float>>(heads);
  for (i64 h = 0; h < heads; ++h)
    (*rates)[h] =
        static_cast<float>(std::log(16 * (static_cast<double>(h) + 0.5) / static_cast<double>(heads)));
  return {.kind = Init::Kind::values, .values = std::move(rates)};
}

// x / |x| over the last dim, as in the FLA library.
Tensor unit_length(const Tensor& given) {
  const Tensor x = to_sum_type(given);
  return x * rsqrt(add_scalar(sum(square(x), {-1}, true), 1e-6));
}

struct DeltaNames {
  LayerName q, k, v, z, b, a;
};
DeltaNames delta_names(const std::string& m, const DeltaSettings& s) {
  const std::string qkv = m + (s.by_key_heads ? "in_proj_qkvz" : "in_proj_qkv");
  if (!s.by_key_heads)
    return {{qkv, "q"},
            {qkv, "k"},
            {qkv, "v"},
            {m + "in_proj_z", "z"},
            {m + "in_proj_b", "b"},
            {m + "in_proj_a", "a"}};
  return {{qkv, "q"}, {qkv, "k"}, {qkv, "v"}, {qkv, "z"}, {m + "in_proj_ba", "b"}, {m + "in_proj_ba", "a"}};
}

}  // namespace

void declare_delta(SpecBuilder& b, const std::string& prefix, i64 width, const DeltaSettings& s) {
  const std::string m = prefix + ".";
  const i64 H = s.heads, P = s.head_dim, G = s.key_heads, N = s.key_dim, R = H / G;
  const HeadsOf of_value{0, H, G, P, false}, of_key{0, H, G, N, true}, one_each{0, H, G, 1, false};
  using Parts = std::vector<SpecBuilder::Part>;
  const Parts qkv = {{"q", G * N, of_key, 0}, {"k", G * N, of_key, 0}, {"v", H * P, of_value, 0}};
  const auto per_head = [&](const std::string& name, const Init& init) {
    ParamSpec& spec = b.add(m + name, {H}, ParamKind::other, init);
    spec.heads = one_each;
    spec.cut = 0;
    spec.precise = true;
  };
  per_head("dt_bias", {Init::Kind::ones});
  per_head("A_log", spread_log_rates(H));
  b.parts(m + "conv1d.weight", qkv, {1, s.taps}, ParamKind::conv, {Init::Kind::normal, s.std});
  if (s.by_key_heads) {
    Parts all = qkv;
    all.push_back({"z", H * P, of_value, 0});
    for (size_t i = 0; i < all.size(); ++i) all[i].block = i < 2 ? N : R * P;
    b.fused(m + "in_proj_qkvz", all, width, false, s.std, false);
    b.fused(m + "in_proj_ba", {{"b", H, one_each, 0, true, R}, {"a", H, one_each, 0, true, R}}, width, false,
            s.std, false);
  } else {
    b.fused(m + "in_proj_z", {{"z", H * P, of_value, 0}}, width, false, s.std, false);
    b.fused(m + "in_proj_b", {{"b", H, one_each, 0, true}}, width, false, s.std, false);
    b.fused(m + "in_proj_a", {{"a", H, one_each, 0, true}}, width, false, s.std, false);
    b.fused(m + "in_proj_qkv", qkv, width, false, s.std, false);
  }
  b.norm(m + "norm", P, false);
  b.linear(m + "out_proj", width, H * P, false, s.std, false, {1, H, G, P, false}).cut = 1;
}

Tensor delta_mixer(const ParamTree& p, const std::string& prefix, const DeltaSettings& s,
                   const ApplyOptions& o, size_t layer, const Tensor& x, const Tensor& key_mask) {
  const std::string m = prefix + ".";
  const i64 B = x.size(0), T = x.size(1), H = s.heads, P = s.head_dim, G = s.key_heads, N = s.key_dim;
  const DeltaNames n = delta_names(m, s);
  const Tensors of = dense_layers(p, {n.q, n.k, n.v, n.z, n.b, n.a}, x, o);
  Tensor beta = sigmoid(to_sum_type(of[4]));  // [B, T, H]
  Tensor decay = softplus(of[5] + p[m + "dt_bias"]) * -exp(p[m + "A_log"]);

  // Padding writes nothing to the state and lets nothing decay.
  RecurrentPass pass(o, layer, key_mask, x, s.taps, decay.dtype());
  if (pass.mask().defined()) {
    beta = beta * pass.mask();
    decay = decay * pass.mask();
  }
  const auto convolved = [&](const std::string& part, const Tensor& y) {
    const Tensor w = p[m + "conv1d.weight[" + part + "]"];
    return activate(s.activation, pass.convolved(y, reshape(w, {y.size(2), s.taps}), {}));
  };
  const Tensor q = unit_length(reshape(convolved("q", of[0]), {B, T, G, N}));
  const Tensor k = unit_length(reshape(convolved("k", of[1]), {B, T, G, N}));
  const Tensor v = reshape(convolved("v", of[2]), {B, T, H, P});
  const Recurrence r = gated_delta_rule({.log_decay = decay,
                                         .k = k,
                                         .q = scale(q, 1 / std::sqrt(static_cast<double>(N))),
                                         .v = v,
                                         .initial = pass.initial(),
                                         .segments = pass.segments()},
                                        beta);
  pass.finish(r.state);
  const Tensor normed = rms_norm(p, m + "norm", r.y, s.eps);
  return dense(p, m + "out_proj", reshape(normed, {B, T, H * P}) * silu(of[3]), o);
}

}  // namespace redco
