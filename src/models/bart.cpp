// BART (Lewis et al. 2020): an encoder and a decoder with norms after each part, learned positions, and one
// embedding table shared by both and the head. B batch, T tokens, S source tokens.
#include <fmt/format.h>

#include <cmath>

#include "models/attention_block.h"
#include "models/families.h"
#include "models/positions.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace redco {

namespace {

constexpr i64 kPositionOffset = 2;  // the first two rows of the position tables are not used
constexpr double kEps = 1e-5;       // torch.nn.LayerNorm's default; no key sets it

class Bart : public Model {
 public:
  explicit Bart(ModelConfig& c) {
    family_ = "bart";
    task_ = ModelTask::seq2seq_lm;
    vocab_size_ = c.integer("vocab_size");
    max_length_ = c.integer_or("max_position_embeddings", 1024);
    width_ = hidden_size_ = c.integer_as({"d_model", "hidden_size"});
    encoder_.layers = c.integer_as({"encoder_layers", "num_hidden_layers"}, 0);
    n_layers_ = decoder_.layers = c.integer("decoder_layers", 0);
    encoder_.heads = heads_of(c, {"encoder_attention_heads", "num_attention_heads"});
    decoder_.heads = heads_of(c, {"decoder_attention_heads"});
    encoder_.inner = c.integer("encoder_ffn_dim");
    decoder_.inner = c.integer("decoder_ffn_dim");
    activation_ = c.activation_or("activation_function", "gelu");
    dropout_ = c.rate_or("dropout", 0.1);
    attention_dropout_ = c.rate_or("attention_dropout", 0);
    activation_dropout_ = c.rate_or("activation_dropout", 0);
    if (c.boolean_or("scale_embedding", false)) embedding_scale_ = std::sqrt(static_cast<double>(width_));
    tied_ = c.boolean_or("tie_word_embeddings", true);
    decoder_start_token_id_ = c.token_or("decoder_start_token_id", 2, vocab_size_);
    pad_token_id_ = c.token_or("pad_token_id", 1, vocab_size_);
    const double std = c.number_or("init_std", 0.02);
    c.expect("is_encoder_decoder", {"true"});
    c.expect("is_decoder", {"false"});
    c.expect("encoder_layerdrop", {"0.0"});
    c.expect("decoder_layerdrop", {"0.0"});
    // Configs of early versions have these keys; other values were other models.
    c.expect("normalize_before", {"false"});
    c.expect("normalize_embedding", {"true"});
    c.expect("add_final_layer_norm", {"false"});
    c.expect("add_bias_logits", {"false"});
    c.expect("static_position_embeddings", {"false"});
    c.expect("extra_pos_embeddings", {"2"});
    // Keys of another task's head, written by early versions.
    c.inert({"classifier_dropout", "classif_dropout", "_num_labels", "output_past", "save_step"});
    c.finish();

    SpecBuilder b(params_);
    b.embedding(kShared, vocab_size_, width_, std, pad_token_id_);
    declare(b, encoder_, std);
    declare(b, decoder_, std);
    if (tied_) {
      for (const Stack* s : {&encoder_, &decoder_}) b.tie(at(*s, "embed_tokens.weight"), kShared);
      b.tie("lm_head.weight", kShared);
    } else {
      b.linear("lm_head", vocab_size_, width_, false, std).role = Role::head;
    }
    b.buffer("final_logits_bias", {1, vocab_size_}, ParamKind::bias);
    config_json_ = c.dump();
  }

  Tensor encode_memory(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    ApplyOptions own = o;
    own.cache = nullptr;
    const Tensor x =
        run(p, encoder_, in.input_ids, in.positions, own,
            [this, mask = in.key_mask, own](const ParamTree& q, i64 i, const Tensor& h) {
              return feed_forward(q, encoder_, i, attend_to_itself(q, encoder_, i, h, mask, own), own);
            });
    return gather_tokens(own, x);
  }

  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    Tensor x = run(p, decoder_, in.input_ids, in.positions, o,
                   [this, in, o](const ParamTree& q, i64 i, const Tensor& h) {
                     const Tensor y = attend_to_itself(q, decoder_, i, h, in.key_mask, o);
                     return feed_forward(q, decoder_, i, attend_to_memory(q, i, y, in, o), o);
                   });
    Scope s("lm_head");
    const Tensor y = lm_head(p, "lm_head", gather_tokens(o, x), o);
    return o.head ? y + p["final_logits_bias"] : y;
  }

  // Rows of the decoder's position table.
  std::vector<i32> positions(std::span<const i32> mask, bool generating) const override {
    std::vector<i32> out = Model::positions(mask, generating);
    for (i32& row : out) row += static_cast<i32>(kPositionOffset);
    return out;
  }

  // BartModel without head is saved without the prefix.
  std::string canonical_name(const std::string& stored) const override {
    if (stored.starts_with("model.") || stored.starts_with("lm_head.") || stored == "final_logits_bias")
      return stored.ends_with("coder.version") ? "" : stored;
    return canonical_name("model." + stored);
  }

 private:
  static constexpr const char* kShared = "model.shared.weight";

  struct Stack {
    std::string name;
    bool decoder;
    i64 layers = 0, inner = 0;
    HeadGeometry heads{};
  };

  static std::string at(const Stack& s, const std::string& rest) { return "model." + s.name + "." + rest; }
  static std::string layer(const Stack& s, i64 i) { return at(s, fmt::format("layers.{}", i)); }

  HeadGeometry heads_of(ModelConfig& c, const std::vector<std::string>& keys) const {
    const i64 H = c.integer_as(keys);
    if (width_ % H != 0) c.fail(keys[0], fmt::format("expected a divisor of d_model={}", width_));
    return {H, H, width_ / H};
  }

  void declare(SpecBuilder& b, const Stack& s, double std) {
    const auto [H, K, D] = s.heads;
    const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
    if (!tied_) b.embedding(at(s, "embed_tokens.weight"), vocab_size_, width_, std, pad_token_id_);
    b.positions(at(s, "embed_positions.weight"), max_length_ + kPositionOffset, width_, std);
    b.norm(at(s, "layernorm_embedding"), width_, true);
    for (i64 i = 0; i < s.layers; ++i) {
      const std::string h = layer(s, i);
      const auto attention = [&](const std::string& a) {
        b.linear(a + ".k_proj", width_, width_, true, std, false, kv);
        b.linear(a + ".v_proj", width_, width_, true, std, false, kv);
        b.linear(a + ".q_proj", width_, width_, true, std, false, q);
        b.linear(a + ".out_proj", width_, width_, true, std, false, o);
        b.norm(a + "_layer_norm", width_, true);
      };
      attention(h + ".self_attn");
      if (s.decoder) attention(h + ".encoder_attn");
      b.linear(h + ".fc1", s.inner, width_, true, std).role = Role::first;
      b.linear(h + ".fc2", width_, s.inner, true, std).role = Role::second;
      b.norm(h + ".final_layer_norm", width_, true);
    }
  }

  // Embeddings and blocks; apply_block(params, i, x) is block i. Positions that are not given count padding
  // too.
  template <class Block>
  Tensor run(const ParamTree& p, const Stack& s, const Tensor& ids, const Tensor& positions,
             const ApplyOptions& o, const Block& apply_block) const {
    Scope scope(s.name.c_str());
    Tensor x;
    {
      Scope inner("embedding");
      x = embedding(p[at(s, "embed_tokens.weight")], ids, pad_token_id_);
      if (embedding_scale_ != 1) x = scale(x, embedding_scale_);
      x = x + embedding(p[at(s, "embed_positions.weight")],
                        positions.defined() ? positions : row_positions(ids, kPositionOffset));
      x = residual(o, x);
      x = layer_norm(p, at(s, "layernorm_embedding"), x, kEps, NormResult::stream);
      x = dropout(o, s.name + "_embedding", dropout_, x);
    }
    for (i64 i = 0; i < s.layers; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      x = run_block(p, o, layer(s, i), x, [apply_block, i](const ParamTree& own, const Tensor& h) {
        return apply_block(own, i, h);
      });
    }
    if (o.hidden_states) o.hidden_states->push_back(x);
    return x;
  }

  AttentionBlock attention(const std::string& a, const Stack& s, bool causal) const {
    const double scale = 1 / std::sqrt(static_cast<double>(s.heads.head_dim));
    return {a + ".q_proj", a + ".k_proj",
            a + ".v_proj", a + ".out_proj",
            s.heads,       {.scale = scale, .causal = causal, .dropout = attention_dropout_}};
  }

  Tensor attend_to_itself(const ParamTree& p, const Stack& s, i64 i, const Tensor& x, const Tensor& mask,
                          const ApplyOptions& o) const {
    Scope scope("attention");
    const std::string a = layer(s, i) + ".self_attn";
    const Tensor y = self_attention(p, attention(a, s, s.decoder), o, i, x, mask);
    return layer_norm(p, a + "_layer_norm", x + dropout(o, "attention_out", dropout_, residual(o, y)), kEps,
                      NormResult::stream);
  }

  Tensor attend_to_memory(const ParamTree& p, i64 i, const Tensor& x, const DecoderInputs& in,
                          const ApplyOptions& o) const {
    Scope scope("cross_attention");
    const std::string a = layer(decoder_, i) + ".encoder_attn";
    const Tensor y = cross_attention(p, attention(a, decoder_, false), o, i, x, in.memory, in.memory_mask);
    return layer_norm(p, a + "_layer_norm", x + dropout(o, "cross_attention_out", dropout_, residual(o, y)),
                      kEps, NormResult::stream);
  }

  Tensor feed_forward(const ParamTree& p, const Stack& s, i64 i, const Tensor& x,
                      const ApplyOptions& o) const {
    Scope scope("mlp");
    const std::string h = layer(s, i);
    Tensor f = activate(activation_, dense(p, h + ".fc1", gather_tokens(o, x), o));
    f = dense(p, h + ".fc2", dropout(o, "mlp", activation_dropout_, f), o);
    return layer_norm(p, h + ".final_layer_norm", x + dropout(o, "mlp_out", dropout_, residual(o, f)), kEps,
                      NormResult::stream);
  }

  i64 width_;
  Stack encoder_{"encoder", false}, decoder_{"decoder", true};
  std::string activation_;
  double dropout_, attention_dropout_, activation_dropout_, embedding_scale_ = 1;
  bool tied_;
};

}  // namespace

std::unique_ptr<Model> make_bart(ModelConfig& c) { return std::make_unique<Bart>(c); }

}  // namespace redco
