#include "models/pre_norm_stack.h"

#include <fmt/format.h>

#include <cmath>

#include "models/attention_block.h"
#include "ops/elementwise.h"

namespace redco {

PreNormStack::PreNormStack(std::string prefix, PreNormSettings settings)
    : prefix_(std::move(prefix)), s_(std::move(settings)) {}

std::string PreNormStack::layer(i64 i) const { return fmt::format("{}{}.{}", prefix_, s_.names.layer, i); }

void PreNormStack::declare(SpecBuilder& b) const {
  const auto [H, K, D] = s_.heads;
  const PreNormNames& n = s_.names;
  const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
  for (i64 i = 0; i < s_.layers; ++i) {
    const std::string h = layer(i) + ".";
    b.linear(h + n.query, s_.width, s_.width, s_.qkv_bias, s_.std.qkv, false, q);
    b.linear(h + n.key, s_.width, s_.width, s_.qkv_bias, s_.std.qkv, false, kv);
    b.linear(h + n.value, s_.width, s_.width, s_.qkv_bias, s_.std.qkv, false, kv);
    b.linear(h + n.out, s_.width, s_.width, true, s_.std.out, false, o);
    if (n.gate_up.empty())
      b.linear(h + n.up, s_.inner, s_.width, true, s_.std.up).role = Role::first;
    else
      b.fused(h + n.gate_up,
              {{.name = "gate", .rows = s_.inner, .role = Role::first},
               {.name = "up", .rows = s_.inner, .role = Role::first}},
              s_.width, true, s_.std.up, false);
    b.linear(h + n.down, s_.width, s_.inner, true, s_.std.down).role = Role::second;
    b.norm(h + n.first_norm, s_.width, true);
    b.norm(h + n.second_norm, s_.width, true);
    for (int branch = 1; s_.branch_scale > 0 && branch <= 2; ++branch)
      b.add(fmt::format("{}layer_scale{}.lambda1", h, branch), {s_.width}, ParamKind::other,
            {Init::Kind::constant, s_.branch_scale});
  }
}

Tensor PreNormStack::scaled(const ParamTree& p, const std::string& layer, int branch, const Tensor& y) const {
  if (s_.branch_scale == 0) return y;
  return y * p[fmt::format("{}.layer_scale{}.lambda1", layer, branch)];
}

Tensor PreNormStack::mlp(const ParamTree& p, const ApplyOptions& o, const std::string& layer,
                         const Tensor& x) const {
  const std::string h = layer + ".";
  const PreNormNames& n = s_.names;
  if (n.gate_up.empty()) return dense(p, h + n.down, activate(s_.activation, dense(p, h + n.up, x, o)), o);
  const Tensors inner =
      dense_layers(p, {LayerName(h + n.gate_up, "gate"), LayerName(h + n.gate_up, "up")}, x, o);
  return dense(p, h + n.down, activate_gated("silu", inner[0], inner[1]), o);
}

Tensor PreNormStack::block(const ParamTree& p, const ApplyOptions& o, i64 i, const Tensor& x0,
                           const Tensor& mask) const {
  const std::string h = layer(i);
  const PreNormNames& n = s_.names;
  Tensor x = x0;
  {
    Scope s("attention");
    const AttentionSettings settings{.scale = 1 / std::sqrt(static_cast<double>(s_.heads.head_dim)),
                                     .causal = s_.causal,
                                     .dropout = s_.attention_dropout};
    const std::string a = h + ".";
    const AttentionBlock attention = {a + n.query, a + n.key, a + n.value, a + n.out, s_.heads, settings};
    const Tensor a0 = layer_norm(p, h + "." + n.first_norm, x, s_.eps);
    const Tensor attended = activation(o, i, ".attention", self_attention(p, attention, o, i, a0, mask));
    const Tensor y = scaled(p, h, 1, residual(o, attended));
    x = x + dropout(o, "attention_out", s_.branch_dropout, y);
  }
  Scope s("mlp");
  const Tensor m = gather_tokens(o, layer_norm(p, h + "." + n.second_norm, x, s_.eps));
  const Tensor y = scaled(p, h, 2, residual(o, activation(o, i, ".mlp", mlp(p, o, h, m))));
  return x + dropout(o, "mlp_out", s_.branch_dropout, y);
}

Tensor PreNormStack::run(const ParamTree& p, const Tensor& x0, const Tensor& mask,
                         const ApplyOptions& o) const {
  Tensor x = x0;
  ApplyOptions own = o;
  own.cache = nullptr;
  for (i64 i = 0; i < s_.layers; ++i) {
    if (o.hidden_states) o.hidden_states->push_back(x);
    x = run_block(p, o, layer(i), x, [this, own, i, mask](const ParamTree& params, const Tensor& h) {
      return block(params, own, i, h, mask);
    });
    x = activation(o, i, "", x);
  }
  if (o.hidden_states) o.hidden_states->push_back(x);  // before the last norm
  return x;
}

}  // namespace redco
