// Legend: B batch, T tokens, C width, H heads, K key/value heads, D head width.
#include "models/llama_decoder.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/attention_block.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace redco {

namespace {

std::string layer_name(i64 i) { return fmt::format("model.layers.{}", i); }

Tensor soft_cap(const Tensor& x, double cap) { return cap > 0 ? scale(tanh(scale(x, 1 / cap)), cap) : x; }

}  // namespace

void LlamaDecoder::read_common(ModelConfig& c, const Defaults& d) {
  Architecture& s = arch_;
  family_ = c.text_or("model_type", "");
  vocab_size_ = c.integer("vocab_size");
  s.padding_row = c.padding_row(vocab_size_);
  max_length_ = c.integer_or("max_position_embeddings", d.max_length);
  s.width = hidden_size_ = c.integer("hidden_size");
  s.inner = c.integer("intermediate_size");
  n_layers_ = c.integer("num_hidden_layers", 0);
  s.layers.resize(n_layers_);

  const i64 H = c.integer("num_attention_heads");
  const bool absent = !c.mentions("num_key_value_heads");
  const i64 K = c.integer_or("num_key_value_heads", absent && d.kv_heads ? d.kv_heads : H);
  if (H % K != 0)
    c.fail("num_key_value_heads", fmt::format("expected a divisor of num_attention_heads={}", H));
  if (!c.has("head_dim") && !d.head_dim && s.width % H != 0)
    c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", s.width));
  s.heads = {H, K, c.integer_or("head_dim", d.head_dim ? d.head_dim : s.width / H)};
  s.score_scale = 1 / std::sqrt(static_cast<double>(s.heads.head_dim));

  s.attention_dropout = c.rate_or("attention_dropout", 0);
  s.eps = c.positive_or("rms_norm_eps", d.eps);
  s.tied = c.boolean_or("tie_word_embeddings", d.tied);
  s.std = c.number_or("initializer_range", 0.02);
}

std::vector<bool> LlamaDecoder::read_sliding_layers(ModelConfig& c, bool* given) const {
  const nlohmann::json types = nlohmann::json::parse(c.json("layer_types"));
  *given = !types.is_null();
  std::vector<bool> slides(n_layers_);
  if (!*given) return slides;
  if (!types.is_array() || static_cast<i64>(types.size()) != n_layers_)
    c.fail("layer_types", fmt::format("expected a list of num_hidden_layers={} texts", n_layers_));
  for (i64 i = 0; i < n_layers_; ++i) {
    if (types[i] != "sliding_attention" && types[i] != "full_attention")
      c.fail("layer_types", "supported: full_attention, sliding_attention");
    slides[i] = types[i] == "sliding_attention";
  }
  return slides;
}

void LlamaDecoder::declare() {
  const Architecture& s = arch_;
  SpecBuilder b(params_);
  const i64 H = s.heads.n_head, K = s.heads.n_kv, D = s.heads.head_dim;
  const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
  const auto norm = [&](const std::string& prefix, i64 width) {
    const Init init{s.unit_offset ? Init::Kind::zeros : Init::Kind::ones, 0};
    b.add(prefix + ".weight", {width}, ParamKind::norm, init);
  };
  b.embedding("model.embed_tokens.weight", vocab_size_, s.width, s.std);
  for (i64 i = 0; i < n_layers_; ++i) {
    const std::string h = layer_name(i);
    norm(h + ".input_layernorm", s.width);
    b.linear(h + ".self_attn.q_proj", H * D, s.width, s.qkv_bias, s.std, false, q);
    b.linear(h + ".self_attn.k_proj", K * D, s.width, s.qkv_bias, s.std, false, kv);
    b.linear(h + ".self_attn.v_proj", K * D, s.width, s.qkv_bias, s.std, false, kv);
    b.linear(h + ".self_attn.o_proj", s.width, H * D, s.o_bias, s.std, false, o);
    if (s.head_norms) {
      norm(h + ".self_attn.q_norm", D);
      norm(h + ".self_attn.k_norm", D);
    }
    norm(h + ".post_attention_layernorm", s.width);
    if (s.outer_norms) norm(h + ".pre_feedforward_layernorm", s.width);
    declare_mlp(b, h);
    if (s.outer_norms) norm(h + ".post_feedforward_layernorm", s.width);
  }
  norm("model.norm", s.width);
  if (s.tied) {
    b.tie("lm_head.weight", "model.embed_tokens.weight");
  } else {
    b.linear("lm_head", vocab_size_, s.width, false, s.std).role = Role::head;
  }
}

void LlamaDecoder::declare_mlp(SpecBuilder& b, const std::string& layer) {
  const Architecture& s = arch_;
  b.linear(layer + ".mlp.gate_proj", s.inner, s.width, s.mlp_bias, s.std).role = Role::first;
  b.linear(layer + ".mlp.up_proj", s.inner, s.width, s.mlp_bias, s.std).role = Role::first;
  b.linear(layer + ".mlp.down_proj", s.width, s.inner, s.mlp_bias, s.std).role = Role::second;
}

Tensor LlamaDecoder::mlp(const ParamTree& p, const std::string& layer, const Tensor& x,
                         const ApplyOptions& o) const {
  const Tensors inner = dense_layers(p, {layer + ".mlp.gate_proj", layer + ".mlp.up_proj"}, x, o);
  return dense(p, layer + ".mlp.down_proj", activate_gated(arch_.activation, inner[0], inner[1]), o);
}

Tensor LlamaDecoder::norm(const ParamTree& p, const std::string& prefix, const Tensor& x) const {
  return offset_rms_norm(p, prefix, x, arch_.eps, arch_.unit_offset);
}

Tensor LlamaDecoder::block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                           const Tensor& x0) const {
  const Architecture& s = arch_;
  const std::string h = layer_name(i), c = h + ".self_attn.";
  Tensor x = x0;
  {
    Scope scope("attention");
    const Layer& layer = s.layers[i];
    const HeadNorms norms{c + "q_norm", c + "k_norm", s.eps, s.unit_offset};
    const AttentionBlock attention = {.q = c + "q_proj",
                                      .k = c + "k_proj",
                                      .v = c + "v_proj",
                                      .out = c + "o_proj",
                                      .heads = s.heads,
                                      .settings = {.scale = s.score_scale,
                                                   .window = layer.window,
                                                   .dropout = s.attention_dropout,
                                                   .softcap = s.score_cap},
                                      .rope = layer.local ? &s.local_rope : &s.rope,
                                      .norms = s.head_norms ? &norms : nullptr};
    const Tensor a = residual(
        o, self_attention(p, attention, o, i, norm(p, h + ".input_layernorm", x), in.key_mask, in.positions));
    x = x + (s.outer_norms ? norm(p, h + ".post_attention_layernorm", a) : a);
  }
  Scope scope("mlp");
  const char* before = s.outer_norms ? ".pre_feedforward_layernorm" : ".post_attention_layernorm";
  const Tensor m = residual(o, mlp(p, h, gather_tokens(o, norm(p, h + before, x)), o));
  return x + (s.outer_norms ? norm(p, h + ".post_feedforward_layernorm", m) : m);
}

Tensor LlamaDecoder::decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const {
  Tensor x;
  {
    Scope s("embedding");
    x = residual(o, embedding(p["model.embed_tokens.weight"], in.input_ids, arch_.padding_row));
    if (arch_.embedding_scale != 1) x = scale(x, arch_.embedding_scale);
  }
  for (i64 i = 0; i < n_layers_; ++i) {
    if (o.hidden_states) o.hidden_states->push_back(x);
    x = run_block(p, o, layer_name(i), x, [this, in, o, i](const ParamTree& own, const Tensor& h) {
      return block(own, in, o, i, h);
    });
  }
  Scope s("lm_head");
  x = gather_tokens(o, norm(p, "model.norm", x));
  if (o.hidden_states) o.hidden_states->push_back(x);
  const Tensor y = lm_head(p, "lm_head", x, o);
  return o.head ? soft_cap(y, arch_.logit_cap) : y;
}

std::string LlamaDecoder::canonical_name(const std::string& stored) const {
  if (stored.ends_with("rotary_emb.inv_freq")) return "";
  if (stored.starts_with("model.") || stored.starts_with("lm_head.")) return stored;
  return "model." + stored;
}

}  // namespace redco
