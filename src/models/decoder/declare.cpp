// The decoder's parameters, in the order of definition.
#include "models/decoder/decoder.h"
#include "models/decoder/latent_attention.h"
#include "models/decoder/mixture.h"
#include "models/decoder/recurrent_mixers.h"
#include "models/xielu.h"

namespace redco {

void Decoder::declare(SpecBuilder& b) const {
  const DecoderArchitecture& s = arch_;
  const DecoderNames& n = s.names;
  const i64 narrow = s.embedding_width;
  b.embedding(at(n.embedding) + ".weight", s.vocab_size, narrow, s.std);
  if (!n.positions.empty()) b.positions(at(n.positions) + ".weight", s.position_rows, s.width, s.std);
  if (!n.embedding_norm.empty()) redco::declare_norm(b, at(n.embedding_norm), s.width, s.norm);
  if (narrow != s.width) b.linear(at(n.project_in), s.width, narrow, false, s.std);
  for (i64 i = 0; i < n_layers(); ++i) {
    declare_mixer(b, i);
    if (s.cross) declare_cross_attention(b, layer(i));
    declare_feed_forward(b, i);
  }
  if (s.final_norm) redco::declare_norm(b, at(n.final_norm), s.width, s.norm);
  if (narrow != s.width) b.linear(at(n.project_out), narrow, s.width, false, s.std);
  declare_head(b);
}

void Decoder::declare_mixer(SpecBuilder& b, i64 i) const {
  const DecoderNames& n = arch_.names;
  const std::string h = layer(i);
  const Mixer mixer = arch_.layers[i].mixer;
  if (mixer == Mixer::none) return;
  declare_norm(b, h, attention_norm(i));
  if (attends(mixer)) declare_attention(b, i);
  if (const RecurrentMixer* const r = recurrent_mixer(mixer)) r->declare(b, h + "." + n.*r->name, arch_);
  declare_norm(b, h, n.attention_out_norm);
}

void Decoder::declare_feed_forward(SpecBuilder& b, i64 i) const {
  const DecoderArchitecture& s = arch_;
  const DecoderLayer& own = s.layers[i];
  const std::string h = layer(i);
  if (!own.mlp) return;
  declare_norm(b, h, s.names.mlp_norm);
  if (own.mixture) declare_mixture(b, h, s.width, s.std, *s.mixture);
  if (!own.mixture || s.mixture->beside_mlp) declare_mlp(b, h);
  declare_norm(b, h, s.names.mlp_out_norm);
}

void Decoder::declare_norm(SpecBuilder& b, const std::string& layer, const std::string& name) const {
  if (!name.empty()) redco::declare_norm(b, layer + "." + name, arch_.width, arch_.norm);
}

void Decoder::declare_attention(SpecBuilder& b, i64 i) const {
  const DecoderArchitecture& s = arch_;
  const std::string layer = this->layer(i);
  const DecoderNames& n = s.names;
  if (s.latent) return declare_latent_attention(b, layer, *s.latent, s.heads.n_head, s.width, s.std);
  const auto [H, K, D] = s.heads;
  const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
  const std::string h = layer + ".";
  if (!n.attention_gate.empty())
    b.linear(h + n.attention_gate, H * D, s.width, false, s.std, s.transposed, q);
  if (s.qkv == QkvStorage::separate) {
    if (s.gated_attention && n.attention_gate.empty()) {
      const std::vector<SpecBuilder::Part> parts = {{.name = "q", .rows = H * D, .heads = q, .block = D},
                                                    {.name = "gate", .rows = H * D, .heads = q, .block = D}};
      b.fused(h + n.q, parts, s.width, s.qkv_bias, s.std, s.transposed);
    } else {
      b.linear(h + n.q, H * D, s.width, s.qkv_bias, s.std, s.transposed, q);
    }
    b.linear(h + n.k, K * D, s.width, s.qkv_bias, s.std, s.transposed, kv);
    b.linear(h + n.v, K * D, s.width, s.qkv_bias, s.std, s.transposed, kv);
  } else {
    std::vector<SpecBuilder::Part> parts = {{"q", H * D, q}, {"k", K * D, kv}, {"v", K * D, kv}};
    if (s.qkv == QkvStorage::quarters) {
      std::swap(parts[1], parts[2]);
      for (SpecBuilder::Part& part : parts) part.block = H * D / 4;
    }
    if (s.qkv == QkvStorage::groups) {
      parts[0].block = H / K * D;
      parts[1].block = parts[2].block = D;
    }
    b.fused(h + n.qkv, parts, s.width, s.qkv_bias, s.std, s.transposed);
  }
  b.linear(h + n.out, s.width, H * D, s.out_bias, s.residual_std, s.transposed, o);
  if (s.layers[i].head_norms) {
    declare_head_norm(b, h + n.q_norm, s.heads, false, s.head_norms);
    declare_head_norm(b, h + n.k_norm, s.heads, true, s.head_norms);
  }
  if (s.sinks) {
    ParamSpec& w = b.add(h + n.sinks, {H}, ParamKind::other, {Init::Kind::normal, s.std});
    w.cut = 0;
    w.heads = {0, H, K, 1, false};
    w.precise = true;
  }
}

void Decoder::declare_cross_attention(SpecBuilder& b, const std::string& layer) const {
  const DecoderArchitecture& s = arch_;
  const auto [H, K, D] = s.heads;
  const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
  const std::string c = layer + "." + s.names.cross_attention;
  declare_norm(b, layer, s.names.cross_attention_norm);
  b.linear(c + "q_attn", s.width, s.width, true, s.std, true, q);
  b.fused(c + "c_attn", {{"k", s.width, kv}, {"v", s.width, kv}}, s.width, true, s.std, true);
  b.linear(c + "c_proj", s.width, s.width, true, s.residual_std, true, o);
}

void Decoder::declare_mlp(SpecBuilder& b, const std::string& layer) const {
  const DecoderArchitecture& s = arch_;
  const DecoderNames& n = s.names;
  const std::string h = layer + ".";
  if (s.gated && !n.gate_up.empty()) {
    std::vector<SpecBuilder::Part> parts = {{"gate", s.inner}, {"up", s.inner}};
    for (SpecBuilder::Part& part : parts) part.role = Role::first;
    b.fused(h + n.gate_up, parts, s.width, s.mlp_bias, s.std, s.transposed);
  } else {
    if (s.gated) b.linear(h + n.gate, s.inner, s.width, s.mlp_bias, s.std, s.transposed).role = Role::first;
    b.linear(h + n.up, s.inner, s.width, s.mlp_bias, s.std, s.transposed).role = Role::first;
  }
  if (s.xielu) declare_xielu(b, h + n.xielu);
  b.linear(h + n.down, s.width, s.inner, s.mlp_bias, s.residual_std, s.transposed).role = Role::second;
}

void Decoder::declare_head(SpecBuilder& b) const {
  const DecoderArchitecture& s = arch_;
  const bool headless = s.bidirectional && s.head_rows == 0;  // an encoder of hidden states
  if (const std::string name = outer_ + s.names.head_layer; name != outer_ && !headless) {
    b.linear(name + ".dense", s.embedding_width, s.embedding_width, s.head_layer.bias, s.std);
    redco::declare_norm(b, name + ".norm", s.embedding_width, s.norm);
  }
  if (s.head_rows > 0) {
    b.linear(head(), s.head_rows, s.embedding_width, s.head_bias, s.std);
    return;
  }
  if (headless) return;
  if (!s.tied) {
    b.linear(head(), s.vocab_size, s.embedding_width, s.head_bias, s.std).role = Role::head;
    return;
  }
  if (s.head_bias) b.add(head() + ".bias", {s.vocab_size}, ParamKind::bias, {Init::Kind::zeros, 0});
  b.tie(head() + ".weight", at(s.names.embedding) + ".weight");
}

}  // namespace redco
