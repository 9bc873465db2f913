// Legend: B batch, T tokens, S source tokens, C width.
#include "models/seq2seq/seq2seq.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "models/attention_block.h"
#include "models/positions.h"
#include "models/spec_builder.h"
#include "nn/random_scope.h"
#include "ops/conv.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "ops/scan.h"
#include "ops/shape.h"

namespace redco {

namespace {

constexpr i64 kTaps = 3;  // of a convolution over time
constexpr const char* kShared = "model.shared.weight";
constexpr const char* kClassHead = "classification_head.";

class Seq2Seq : public Model {
 public:
  Seq2Seq(ModelConfig& c, Seq2SeqArchitecture architecture) : arch_(std::move(architecture)) {
    const Seq2SeqArchitecture& s = arch_;
    family_ = s.family;
    task_ = listens()       ? ModelTask::speech_to_text
            : s.labels == 0 ? ModelTask::seq2seq_lm
                            : ModelTask::sequence_classification;
    num_labels_ = s.labels;
    problem_type_ = s.problem_type;
    audio_shape_ = s.audio;
    vocab_size_ = s.vocab_size;
    max_length_ = s.max_length;
    hidden_size_ = s.width;
    n_layers_ = s.decoder.layers;
    decoder_start_token_id_ = s.start_token;
    pad_token_id_ = s.padding;
    norm_ = {.rms = false, .bias = true, .eps = 1e-5};  // torch.nn.LayerNorm's default; no key sets it
    if (s.positions == SourcePositions::sinusoids) sinusoids_ = sinusoid_rows(s.max_length, s.width);
    if (s.positions == SourcePositions::counted_sinusoids)
      sinusoids_ = counted_sinusoid_rows(s.max_length + first_row(), s.width, s.padding);
    declare();
    config_json_ = c.dump();
  }

  Tensor encode_memory(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    ApplyOptions own = o;
    own.cache = nullptr;
    const StackSettings& e = arch_.encoder;
    const auto embed = [&] {
      return listens() ? listened(p, in.features) : embedded(p, e, in.input_ids, in.positions);
    };
    const Tensor x =
        run(p, e, embed, own, [this, mask = in.key_mask, own](const ParamTree& q, i64 i, const Tensor& h) {
          const StackSettings& e = arch_.encoder;
          return feed_forward(q, e, i, attend_to_itself(q, e, i, h, mask, own), own);
        });
    return gather_tokens(own, x);
  }

  // Scores of classes [B, labels].
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    const Tensor& ids = in.input_ids;
    const Tensor memory = encode_memory(p, in, o);
    const Tensor x =
        gather_tokens(o, decoded(p, {shifted_ids(ids, arch_.start_token), {}, {}, memory, in.key_mask}, o));
    if (!o.head) return x;
    const Scope scope("classification_head");
    const DType type = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
    const Tensor ends = compare(Binary::eq, to_float(ids, type),
                                full({}, static_cast<double>(arch_.end_token), type));  // [B, T]
    const Tensor last = ends * compare(Binary::eq, cumsum(ends, 1, true), full({}, 1, type));
    const Tensor state = sum(x * cast(reshape(last, {ids.size(0), ids.size(1), 1}), x.dtype()), {1});
    const std::string h = kClassHead;
    const Tensor inner = tanh(dense(p, h + "dense", dropout(o, "classifier", arch_.head_dropout, state), o));
    return dense(p, h + "out_proj", dropout(o, "classifier_inner", arch_.head_dropout, inner), o);
  }

  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    const Tensor x = decoded(p, in, o);
    Scope s("lm_head");
    const Tensor y = lm_head(p, head(), gather_tokens(o, x), o);
    return o.head && arch_.logits_bias ? y + p["final_logits_bias"] : y;
  }

  // Rows of the decoder's positions.
  std::vector<i32> positions(std::span<const i32> mask, bool generating) const override {
    std::vector<i32> out = Model::positions(mask, generating);
    for (i32& row : out) row += static_cast<i32>(first_row());
    return out;
  }

  std::vector<i32> decoder_input_ids(std::span<const i32> labels) const override {
    if (!arch_.rotated_labels) return Model::decoder_input_ids(labels);
    std::vector<i32> out;
    for (const i32 label : labels) out.push_back(label < 0 ? pad_token_id_ : label);
    // The last token, if padding is at the end only. transformers finds it by the number of tokens.
    const auto tokens = static_cast<i64>(out.size()) - std::ranges::count(out, pad_token_id_);
    if (tokens == 0) return out;
    out.insert(out.begin(), out[tokens - 1]);
    out.pop_back();
    return out;
  }

  // A model without head is saved without the prefix. Sinusoids are computed, whether files hold them or not.
  std::string canonical_name(const std::string& stored) const override {
    const bool known = stored.starts_with("model.") || stored.starts_with(head()) ||
                       stored == "final_logits_bias" || stored.starts_with(kClassHead);
    if (!known) return canonical_name("model." + stored);
    if (stored.ends_with("coder.version")) return "";
    if (arch_.labels > 0 && (stored.starts_with(head()) || stored == "final_logits_bias")) return "";
    const bool table =
        stored.ends_with("embed_positions.weight") || stored.ends_with("embed_positions.weights");
    if (!sinusoids_.empty() && table) return "";
    return stored;
  }

 private:
  static std::string at(const StackSettings& s, const std::string& rest) {
    return "model." + s.name + "." + rest;
  }
  static std::string layer(const StackSettings& s, i64 i) { return at(s, fmt::format("layers.{}", i)); }
  bool listens() const { return arch_.audio.bands > 0; }
  const char* head() const { return listens() ? "proj_out" : "lm_head"; }
  std::string tokens() const { return listens() ? at(arch_.decoder, "embed_tokens.weight") : kShared; }
  i64 first_row() const {
    if (arch_.positions == SourcePositions::sinusoids || listens()) return 0;
    return arch_.positions == SourcePositions::learned ? arch_.first_row : arch_.padding + 1;
  }

  void declare() {
    const Seq2SeqArchitecture& s = arch_;
    SpecBuilder b(params_);
    b.embedding(tokens(), s.vocab_size, s.width, s.std, s.padding);
    if (listens()) declare_convolutions(b);
    declare_stack(b, s.encoder);
    declare_stack(b, s.decoder);
    if (s.tied) {
      for (const StackSettings* stack : {&s.encoder, &s.decoder})
        if (!listens()) b.tie(at(*stack, "embed_tokens.weight"), kShared);
      if (s.labels == 0) b.tie(std::string(head()) + ".weight", tokens());
    } else if (s.labels == 0) {
      b.linear(head(), s.vocab_size, s.width, false, s.std).role = Role::head;
    }
    if (s.labels > 0) {
      b.linear(std::string(kClassHead) + "dense", s.width, s.width, true, s.std);
      b.linear(std::string(kClassHead) + "out_proj", s.labels, s.width, true, s.std);
    } else if (s.logits_bias) {
      b.buffer("final_logits_bias", {1, s.vocab_size}, ParamKind::bias);
    }
  }

  // The convolutions over time, and the table of the encoder's positions.
  void declare_convolutions(SpecBuilder& b) {
    const auto& [bands, frames] = arch_.audio;
    const std::string table = at(arch_.encoder, "embed_positions.weight");
    for (const auto& [name, in] : {std::pair("conv1", bands), std::pair("conv2", arch_.width)}) {
      b.add(at(arch_.encoder, name) + std::string(".weight"), {arch_.width, in, kTaps}, ParamKind::conv,
            {Init::Kind::normal, arch_.std});
      b.add(at(arch_.encoder, name) + std::string(".bias"), {arch_.width}, ParamKind::bias,
            {Init::Kind::zeros, 0});
    }
    b.buffer(table, {frames / 2, arch_.width}, ParamKind::embedding);
    params_.specs.back().precise = true;
    params_.specs.back().init = {.kind = Init::Kind::values,
                                 .values = std::make_shared<const std::vector<float>>(
                                     counted_sinusoid_rows(frames / 2, arch_.width, -1))};
  }

  void declare_stack(SpecBuilder& b, const StackSettings& s) {
    const Seq2SeqArchitecture& a = arch_;
    const i64 C = a.width;
    const double std = a.std;
    const auto [H, K, D] = s.heads;
    const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
    if (!a.tied && !listens()) b.embedding(at(s, "embed_tokens.weight"), a.vocab_size, C, std, a.padding);
    if (a.positions == SourcePositions::learned)
      b.positions(at(s, "embed_positions.weight"), a.max_length + a.first_row, C, std);
    if (listens() && s.decoder) b.positions(at(s, "embed_positions.weight"), a.max_length, C, std);
    if (a.embedding_norm) declare_norm(b, at(s, "layernorm_embedding"), C, norm_);
    for (i64 i = 0; i < s.layers; ++i) {
      const std::string h = layer(s, i);
      const auto attention = [&](const std::string& name) {
        b.linear(name + ".k_proj", C, C, a.key_bias, std, false, kv);
        b.linear(name + ".v_proj", C, C, true, std, false, kv);
        b.linear(name + ".q_proj", C, C, true, std, false, q);
        b.linear(name + ".out_proj", C, C, true, std, false, o);
        declare_norm(b, name + "_layer_norm", C, norm_);
      };
      attention(h + ".self_attn");
      if (s.decoder) attention(h + ".encoder_attn");
      b.linear(h + ".fc1", s.inner, C, true, std).role = Role::first;
      b.linear(h + ".fc2", C, s.inner, true, std).role = Role::second;
      declare_norm(b, h + ".final_layer_norm", C, norm_);
    }
    if (a.pre_norm) declare_norm(b, at(s, "layer_norm"), C, norm_);
  }

  // Tokens with their positions, [B, T, C]. Positions that are not given count padding too, unless the family
  // counts them from the ids.
  Tensor embedded(const ParamTree& p, const StackSettings& s, const Tensor& ids,
                  const Tensor& positions) const {
    Tensor x = embedding(p[at(s, "embed_tokens.weight")], ids, arch_.padding);
    const bool normed = s.decoder && arch_.norms_tokens;  // transformers does not scale these
    if (arch_.embedding_scale != 1 && !normed) x = scale(x, arch_.embedding_scale);
    if (normed) x = norm(p, at(s, "layernorm_embedding"), x, norm_, NormResult::stream);
    return x + of_positions(p, s, x, positions.defined() ? positions : rows_of(ids));
  }

  // A recording [B, bands, frames] -> [B, frames / 2, C].
  Tensor listened(const ParamTree& p, const Tensor& features) const {
    const auto& [bands, frames] = arch_.audio;
    if (features.visible() != 3 || features.size(1) != bands || features.size(2) != frames)
      throw ContentsError("[model] recordings of shape {}; the model expects ({}, {})",
                          to_string(features.shape()), bands, frames);
    const i64 B = features.size(0), C = arch_.width;
    Tensor x = reshape(features, {B, bands, 1, frames});
    for (const auto& [name, stride] : {std::pair("conv1", i64{1}), std::pair("conv2", i64{2})}) {
      const std::string conv = at(arch_.encoder, name);
      const Tensor kernel = reshape(p[conv + ".weight"], {C, x.size(1), 1, kTaps});
      x = activate("gelu", conv2d(x, kernel, p[conv + ".bias"], {.stride = {1, stride}, .padding = {0, 1}}));
    }
    x = permute(reshape(x, {B, C, frames / 2}), {0, 2, 1});
    return x + p[at(arch_.encoder, "embed_positions.weight")];
  }

  // The decoder's states [B, T, C].
  Tensor decoded(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const {
    // Positions that are counted from the padding depend on the ids, which are whole without a cache.
    const bool by_ids = arch_.positions == SourcePositions::counted_sinusoids && !o.cache;
    const auto embed = [&] {
      return embedded(p, arch_.decoder, in.input_ids, by_ids ? Tensor() : in.positions);
    };
    return run(p, arch_.decoder, embed, o, [this, in, o](const ParamTree& q, i64 i, const Tensor& h) {
      const StackSettings& d = arch_.decoder;
      const Tensor y = attend_to_itself(q, d, i, h, in.key_mask, o);
      return feed_forward(q, d, i, attend_to_memory(q, i, y, in, o), o);
    });
  }

  // Inputs and blocks; apply_block(params, i, x) is block i.
  template <class Embed, class Block>
  Tensor run(const ParamTree& p, const StackSettings& s, const Embed& embed, const ApplyOptions& o,
             const Block& apply_block) const {
    Scope scope(s.name.c_str());
    Tensor x;
    {
      Scope inner("embedding");
      x = residual(o, embed());
      if (arch_.embedding_norm && !(s.decoder && arch_.norms_tokens))
        x = norm(p, at(s, "layernorm_embedding"), x, norm_, NormResult::stream);
      x = activation(o, "embedding", dropout(o, s.name + "_embedding", arch_.dropout, x));
    }
    for (i64 i = 0; i < s.layers; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      if (skips_layer(o, s, i)) continue;
      x = run_block(p, o, layer(s, i), x, [apply_block, i](const ParamTree& own, const Tensor& h) {
        return apply_block(own, i, h);
      });
      x = activation(o, i, "", x);
    }
    if (arch_.pre_norm) x = norm(p, at(s, "layer_norm"), x, norm_, NormResult::stream);
    x = activation(o, "final_norm", x);
    if (o.hidden_states) o.hidden_states->push_back(x);
    return x;
  }

  Tensor rows_of(const Tensor& ids) const {
    if (arch_.positions == SourcePositions::counted_sinusoids)
      return row_positions(ids, first_row(), arch_.padding);
    return row_positions(ids, first_row());
  }

  // [B, T, C]
  Tensor of_positions(const ParamTree& p, const StackSettings& s, const Tensor& x, const Tensor& rows) const {
    if (sinusoids_.empty()) return embedding(p[at(s, "embed_positions.weight")], rows);
    return table_rows(rows, sinusoids_, arch_.width, x.dtype());
  }

  // The same for all rows of a step, and on all ranks.
  static bool skips_layer(const ApplyOptions& o, const StackSettings& s, i64 i) {
    if (!o.train || s.layer_dropout <= 0) return false;
    Restore<SharedText> scope(Context::current().random_scope, scope_in_pass(layer(s, i)));
    const u64 key = Context::current().key("layer_dropout");
    return static_cast<double>(key >> 11) * 0x1p-53 < s.layer_dropout;
  }

  AttentionBlock attention(const std::string& a, const StackSettings& s, bool causal) const {
    const double scale = 1 / std::sqrt(static_cast<double>(s.heads.head_dim));
    return {a + ".q_proj", a + ".k_proj",
            a + ".v_proj", a + ".out_proj",
            s.heads,       {.scale = scale, .causal = causal, .dropout = arch_.attention_dropout}};
  }

  // x before a part with this norm, and the stream after it.
  Tensor before(const ParamTree& p, const std::string& name, const Tensor& x) const {
    return arch_.pre_norm ? norm(p, name, x, norm_) : x;
  }
  Tensor after(const ParamTree& p, const ApplyOptions& o, const char* site, const std::string& name,
               const Tensor& x, const Tensor& y) const {
    const Tensor sum = x + dropout(o, site, arch_.dropout, residual(o, y));
    return arch_.pre_norm ? sum : norm(p, name, sum, norm_, NormResult::stream);
  }

  Tensor attend_to_itself(const ParamTree& p, const StackSettings& s, i64 i, const Tensor& x,
                          const Tensor& mask, const ApplyOptions& o) const {
    Scope scope("attention");
    const std::string a = layer(s, i) + ".self_attn", n = a + "_layer_norm";
    const Tensor y = self_attention(p, attention(a, s, s.decoder), o, i, before(p, n, x), mask);
    return after(p, o, "attention_out", n, x, activation(o, i, ".attention", y));
  }

  Tensor attend_to_memory(const ParamTree& p, i64 i, const Tensor& x, const DecoderInputs& in,
                          const ApplyOptions& o) const {
    Scope scope("cross_attention");
    const StackSettings& d = arch_.decoder;
    const std::string a = layer(d, i) + ".encoder_attn", n = a + "_layer_norm";
    const Tensor y =
        cross_attention(p, attention(a, d, false), o, i, before(p, n, x), in.memory, in.memory_mask);
    return after(p, o, "cross_attention_out", n, x, y);
  }

  Tensor feed_forward(const ParamTree& p, const StackSettings& s, i64 i, const Tensor& x,
                      const ApplyOptions& o) const {
    Scope scope("mlp");
    const std::string h = layer(s, i), n = h + ".final_layer_norm";
    Tensor f = activate(arch_.activation, dense(p, h + ".fc1", gather_tokens(o, before(p, n, x)), o));
    f = dense(p, h + ".fc2", dropout(o, "mlp", arch_.activation_dropout, f), o);
    return after(p, o, "mlp_out", n, x, activation(o, i, ".mlp", f));
  }

  Seq2SeqArchitecture arch_;
  NormSettings norm_;
  std::vector<float> sinusoids_;  // [rows, C]
};

}  // namespace

std::unique_ptr<Model> make_seq2seq_model(ModelConfig& c, ReadSeq2Seq read) {
  Seq2SeqArchitecture architecture = read(c);
  c.finish();
  return std::make_unique<Seq2Seq>(c, std::move(architecture));
}

}  // namespace redco
