// Legend: B batch, T tokens, C width, H heads, K key/value heads, D head width.
#include "models/decoder/decoder.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "models/attention_block.h"
#include "models/decoder/latent_attention.h"
#include "models/decoder/mixture.h"
#include "models/decoder/recurrent_mixers.h"
#include "models/positions.h"
#include "models/xielu.h"
#include "nn/cache.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/shape.h"
#include "ops/special.h"

namespace redco {

namespace {

// The slopes of ALiBi for H heads: powers of 2^(-8/n) for n = H if that is a power of 2; otherwise those of
// the next smaller power, followed by every second one of the next larger power.
std::vector<float> alibi_slopes(i64 H, double factor) {
  i64 n = 1;
  while (2 * n <= H) n *= 2;
  std::vector<float> out(H);
  for (i64 h = 0; h < H; ++h) {
    const double power = h < n ? 8.0 * static_cast<double>(h + 1) / static_cast<double>(n)
                               : 8.0 * static_cast<double>(2 * (h - n) + 1) / static_cast<double>(2 * n);
    out[h] = static_cast<float>(factor * std::exp2(-power));
  }
  return out;
}

Tensor soft_cap(const Tensor& x, double cap) { return cap > 0 ? scale(tanh(scale(x, 1 / cap)), cap) : x; }

Tensor scaled(const Tensor& x, double factor) { return factor == 1 ? x : scale(x, factor); }

}  // namespace

Decoder::Decoder(DecoderArchitecture architecture, std::string outer)
    : arch_(std::move(architecture)), outer_(std::move(outer)) {
  if (arch_.embedding_width == 0) arch_.embedding_width = arch_.width;
  if (arch_.alibi > 0)
    slopes_ = std::make_shared<const std::vector<float>>(alibi_slopes(arch_.heads.n_head, arch_.alibi));
  if (arch_.sinusoids)
    sinusoids_ = counted_sinusoid_rows(arch_.position_rows, arch_.width, arch_.padding_row);
}

std::string Decoder::layer(i64 i) const { return at(fmt::format("{}.{}", arch_.names.layers, i)); }

Tensor Decoder::apply(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const {
  const DecoderArchitecture& s = arch_;
  Tensor x = activation(o, "embedding", embed(p, in, o));
  for (i64 i = 0; i < n_layers(); ++i) {
    if (o.hidden_states && !s.states_after_layers) o.hidden_states->push_back(x);
    const Tensors results = run_block(
        p, o, layer(i), x,
        [this, in, o, i](const ParamTree& own, const Tensor& h) { return block_results(own, in, o, i, h); });
    x = results[0];
    if (o.router_logits) o.router_logits->insert(o.router_logits->end(), results.begin() + 1, results.end());
    x = activation(o, i, "", x);
    if (o.hidden_states && s.states_after_layers) o.hidden_states->push_back(x);
  }
  Scope scope("lm_head");
  if (s.final_norm) x = redco::norm(p, at(s.names.final_norm), x, s.norm);
  x = gather_tokens(o, x);
  if (s.embedding_width != s.width) x = dense(p, at(s.names.project_out), x, o);
  x = activation(o, "final_norm", x);
  if (o.hidden_states) o.hidden_states->push_back(x);
  if (o.head && !s.names.head_layer.empty()) x = head_layer(p, head_input(o, x), o);
  if (o.head) x = dropout(o, "classifier", s.head_dropout, x);
  const Tensor y = lm_head(p, head(), x, o);
  return o.head ? soft_cap(scaled(y, s.logit_scale), s.logit_cap) : y;
}

Tensor Decoder::embed(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const {
  const DecoderArchitecture& s = arch_;
  const DecoderNames& n = s.names;
  Scope scope("embedding");
  Tensor x = embedding(p[at(n.embedding) + ".weight"], in.input_ids, s.padding_row);
  if (s.embedding_width != s.width) x = dense(p, at(n.project_in), x, o);
  x = scaled(x, s.embedding_scale);
  if (!n.positions.empty()) x = x + embedding(p[at(n.positions) + ".weight"], in.positions);
  if (s.sinusoids) x = x + table_rows(in.positions, sinusoids_, s.width, x.dtype());
  x = residual(o, x);
  if (!n.embedding_norm.empty()) x = redco::norm(p, at(n.embedding_norm), x, s.norm, NormResult::stream);
  return dropout(o, "embedding", s.embedding_dropout, x);
}

Tensor Decoder::head_layer(const ParamTree& p, const Tensor& x, const ApplyOptions& o) const {
  const std::string name = outer_ + arch_.names.head_layer;
  const Tensor y = activate(arch_.head_layer.activation, dense(p, name + ".dense", x, o));
  return redco::norm(p, name + ".norm", y, arch_.norm);
}

Tensor Decoder::norm(const ParamTree& p, const std::string& layer, const std::string& name, const Tensor& x,
                     NormResult result) const {
  return name.empty() ? x : redco::norm(p, layer + "." + name, x, arch_.norm, result);
}

Tensor Decoder::add_branch(const ParamTree& p, const ApplyOptions& o, const std::string& layer,
                           const Branch& branch, const Tensor& x, const Tensor& normed,
                           const Tensor& y) const {
  const DecoderArchitecture& s = arch_;
  Tensor out = dropout(o, branch.site, branch.dropout, residual(o, y));
  out = scaled(norm(p, layer, branch.out_norm, out), s.residual_scale);
  const Tensor sum = (s.stream_from_norm ? normed : x) + out;
  return s.block == Block::post_norm ? norm(p, layer, branch.norm, sum, NormResult::stream) : sum;
}

Tensors Decoder::block_results(const ParamTree& p, const DecoderInputs& in, ApplyOptions o, i64 i,
                               const Tensor& x) const {
  std::vector<Tensor> logits;  // a block that runs again must not write to those of the pass
  if (o.router_logits) o.router_logits = &logits;
  Tensors out = {block(p, in, o, i, x)};
  for (Tensor& t : logits) out.push_back(std::move(t));
  return out;
}

Tensor Decoder::block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                      const Tensor& x0) const {
  if (arch_.block == Block::parallel) return parallel_block(p, in, o, i, x0);
  const bool before = arch_.block == Block::pre_norm;
  const std::string h = layer(i);
  Tensor x = x0;
  const DecoderLayer& own = arch_.layers[i];
  if (own.mixer != Mixer::none) {
    Scope scope(own.mixer == Mixer::attention ? "attention" : "mixer");
    const Branch branch = attention_branch(i);
    const Tensor a = before ? norm(p, h, branch.norm, x) : x;
    x = add_branch(p, o, h, branch, x, a, activation(o, i, ".attention", mixer(p, in, o, i, a)));
  } else if (o.cache) {
    o.cache->layer(static_cast<size_t>(i)).append({}, x.size(1));
  }
  if (arch_.cross) x = attention_to_memory(p, in, o, i, x);
  if (!own.mlp) return x;
  Scope scope("mlp");
  const Branch branch = mlp_branch();
  const Tensor m = before ? norm(p, h, branch.norm, x) : x;
  return add_branch(p, o, h, branch, x, m,
                    activation(o, i, ".mlp", feed_forward(p, i, gather_tokens(o, m), o)));
}

// One sum of three, so that Partial terms need one reduction: to the placement of x.
Tensor Decoder::parallel_block(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                               const Tensor& x) const {
  const DecoderArchitecture& s = arch_;
  const std::string h = layer(i);
  const Tensor a = gather_tokens(o, norm(p, h, s.names.attention_norm, x));
  Tensor attended;
  {
    Scope scope("attention");
    attended = scaled(activation(o, i, ".attention", attention(p, in, o, i, a)), s.residual_scale);
    attended = dropout(o, "attention_out", s.attention_out_dropout, attended);
  }
  Scope scope("mlp");
  const Tensor m = s.names.mlp_norm.empty() ? a : gather_tokens(o, norm(p, h, s.names.mlp_norm, x));
  const Tensor y = scaled(activation(o, i, ".mlp", feed_forward(p, i, m, o)), s.residual_scale);
  if (s.dropout_of_sum && o.train && s.mlp_out_dropout > 0)
    return x + dropout(o, "mlp_out", s.mlp_out_dropout, attended + y);
  return add({x, attended, dropout(o, "mlp_out", s.mlp_out_dropout, y)});
}

Tensor Decoder::mixer(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                      const Tensor& x) const {
  const Mixer kind = arch_.layers[i].mixer;
  const RecurrentMixer* const recurrence = recurrent_mixer(kind);
  if (!recurrence) return attention(p, in, o, i, x);
  const Tensor all = gather_tokens(o, x);
  // The states of mixers that run next to attention follow the caches of all layers.
  const i64 cached = attends(kind) ? n_layers() + i : i;
  const Tensor y = recurrence->apply(p, layer(i) + "." + arch_.names.*recurrence->name, arch_, o,
                                     static_cast<size_t>(cached), all, in.key_mask);
  if (!attends(kind)) return y;
  const Tensor attended = attention(p, in, o, i, scaled(all, arch_.attention_in_scale));
  return add({y, scaled(attended, arch_.attention_out_scale)});
}

Tensor Decoder::attention(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                          const Tensor& x) const {
  const DecoderArchitecture& s = arch_;
  const DecoderNames& n = s.names;
  const std::string h = layer(i) + ".";
  const DecoderLayer& own = s.layers[i];
  const i64 tokens = in.input_ids.size(1) + (o.cache ? o.cache->length() : 0);
  const RopeOptions rope = own.rope < 0 ? RopeOptions() : s.ropes[own.rope].at(tokens);
  const AttentionSettings settings{.scale = score_scale(i),
                                   .window = own.window,
                                   .dropout = s.attention_dropout,
                                   .softcap = s.score_cap,
                                   .slopes = slopes_};
  if (s.latent)
    return latent_attention(p, layer(i), *s.latent, settings, o, i, x, in.key_mask, in.positions, rope);
  const bool fused = s.qkv != QkvStorage::separate;
  const bool grows = s.query_growth > 0 && own.grows && tokens + s.query_growth_first > s.query_growth_length;
  const bool normed = own.head_norms && s.head_norms.over != HeadNormSettings::Over::none;
  std::optional<LayerName> gate;
  if (s.gated_attention)
    gate = n.attention_gate.empty() ? LayerName(h + n.q, "gate") : LayerName(h + n.attention_gate);
  const HeadNorms norms{h + n.q_norm, h + n.k_norm, s.head_norms};
  const AttentionBlock attention = {
      .q = fused ? LayerName(h + n.qkv, "q") : LayerName(h + n.q, gate && !gate->part.empty() ? "q" : ""),
      .k = fused ? LayerName(h + n.qkv, "k") : LayerName(h + n.k),
      .v = fused ? LayerName(h + n.qkv, "v") : LayerName(h + n.v),
      .out = h + n.out,
      .heads = s.heads,
      .settings = settings,
      .rope = own.rope < 0 ? nullptr : &rope,
      .norms = normed ? &norms : nullptr,
      .clip = s.clip_qkv,
      .sinks = s.sinks ? h + n.sinks : "",
      .gate = gate,
      .query_scale = grows ? query_growth(in) : Tensor()};
  if (own.chunk == 0) return self_attention(p, attention, o, i, x, in.key_mask, in.positions);
  ApplyOptions in_chunks = o;
  in_chunks.segmented = true;
  return self_attention(p, attention, in_chunks, i, x,
                        chunk_numbers(in.positions, in.key_mask, own.chunk, tokens), in.positions);
}

Tensor Decoder::query_growth(const DecoderInputs& in) const {
  const Tensor positions = add_scalar(to_float(in.positions), static_cast<double>(arch_.query_growth_first));
  const Tensor lengths = floor(positions / full({}, static_cast<double>(arch_.query_growth_length)));
  const Tensor factors = add_scalar(scale(log1p(lengths), arch_.query_growth), 1);
  return reshape(factors, {factors.size(0), factors.size(1), 1, 1});
}

Tensor Decoder::attention_to_memory(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o, i64 i,
                                    const Tensor& x) const {
  const DecoderArchitecture& s = arch_;
  Scope scope("cross_attention");
  const std::string h = layer(i), c = h + "." + s.names.cross_attention;
  const AttentionSettings settings{.scale = score_scale(i), .causal = false, .dropout = s.attention_dropout};
  const AttentionBlock attention = {
      c + "q_attn", {c + "c_attn", "k"}, {c + "c_attn", "v"}, c + "c_proj", s.heads, settings};
  const Tensor a = norm(p, h, s.names.cross_attention_norm, x);
  const Tensor out = cross_attention(p, attention, o, i, a, in.memory, in.memory_mask);
  return x + dropout(o, "cross_attention_out", s.attention_out_dropout, residual(o, out));
}

Tensor Decoder::feed_forward(const ParamTree& p, i64 i, const Tensor& x, const ApplyOptions& o) const {
  if (!arch_.layers[i].mixture) return mlp(p, i, x, o);
  const Tensor y = mixture_of_experts(p, layer(i), *arch_.mixture, x, o);
  return arch_.mixture->beside_mlp ? add({y, mlp(p, i, x, o)}) : y;
}

Tensor Decoder::mlp(const ParamTree& p, i64 i, const Tensor& x, const ApplyOptions& o) const {
  const DecoderArchitecture& s = arch_;
  const DecoderNames& n = s.names;
  const std::string h = layer(i) + ".";
  if (!s.gated) {
    const Tensor inner = dense(p, h + n.up, x, o);
    const Tensor y = s.xielu ? xielu(p, h + n.xielu, inner) : activate(s.activation, inner);
    return dense(p, h + n.down, dropout(o, "mlp", s.inner_dropout, y), o);
  }
  const bool fused = !n.gate_up.empty();
  const LayerName gate = fused ? LayerName(h + n.gate_up, "gate") : LayerName(h + n.gate);
  const LayerName up = fused ? LayerName(h + n.gate_up, "up") : LayerName(h + n.up);
  const Tensors inner = dense_layers(p, {gate, up}, x, o);
  const Tensor y = activate_gated(s.activation, scaled(inner[0], s.gate_scale), inner[1]);
  return scaled(dense(p, h + n.down, dropout(o, "mlp", s.inner_dropout, y), o), s.mlp_out_scale);
}

std::string Decoder::canonical_name(const std::string& stored) const {
  const DecoderNames& n = arch_.names;
  const std::string rest = stored.starts_with("model.") ? stored.substr(6) : stored;
  for (const std::string& other : n.other_parts)
    if (rest.starts_with(other)) return "";
  return own_name(!n.part.empty() && rest.starts_with(n.part) ? rest.substr(n.part.size()) : stored);
}

std::string Decoder::own_name(const std::string& stored) const {
  const DecoderNames& n = arch_.names;
  const bool headless = arch_.bidirectional && arch_.head_rows == 0;
  if (!n.head_layer.empty() && stored.starts_with(n.head_layer + ".")) return headless ? "" : stored;
  if (stored.starts_with(n.head + ".")) return headless ? "" : stored;
  if (arch_.head_rows > 0 && (stored.starts_with("lm_head.") || stored.starts_with("embed_out.")))
    return stored;
  if (stored.starts_with("lm_head.")) return n.head + stored.substr(7);  // GPT-NeoX's embed_out
  for (const std::string& buffer : n.buffers)
    if (stored.ends_with(buffer)) return "";
  // The prefix may lack its first components: "model.decoder.", "decoder.", "".
  std::string_view rest = stored, prefix = n.prefix;
  while (!prefix.empty()) {
    const std::string_view first = prefix.substr(0, prefix.find('.') + 1);
    if (rest.starts_with(first)) rest.remove_prefix(first.size());
    prefix.remove_prefix(first.size());
  }
  if (const std::string start = n.layers + "."; arch_.extra_layers && rest.starts_with(start)) {
    const std::string_view number = rest.substr(start.size(), rest.find('.', start.size()) - start.size());
    i64 index = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), index);
    if (error == std::errc() && index >= n_layers()) return "";
  }
  return n.prefix + std::string(rest);
}

std::vector<i32> Decoder::counted_positions(std::span<const i32> mask) const {
  std::vector<i32> out(mask.size());
  i32 seen = 0;
  for (size_t t = 0; t < mask.size(); ++t) {
    seen += mask[t];
    out[t] = seen * mask[t] - 1;
  }
  return out;
}

}  // namespace redco
