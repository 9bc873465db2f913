// T5 (Raffel et al. 2020), its 1.1 release, Flan-T5, mT5 (Xue et al. 2021) and umT5 (Chung et al. 2023): an
// encoder and a decoder with RMS norms, no biases, unscaled attention, and relative positions (a learned bias
// of the scores by distance). The first layer of a stack holds the bias table for all its layers; in umT5
// each layer has its own. B batch, T tokens, S source tokens, H heads.
#include <fmt/ranges.h>

#include <cmath>

#include "models/attention_block.h"
#include "models/families.h"
#include "models/relative_bias.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"

namespace redco {

namespace {

class T5 : public Model {
 public:
  explicit T5(ModelConfig& c) {
    family_ = c.text_or("model_type", "t5");
    own_tables_ = family_ == "umt5";
    const bool multilingual = family_ == "mt5" || own_tables_;
    task_ = ModelTask::seq2seq_lm;
    vocab_size_ = c.integer("vocab_size");
    width_ = hidden_size_ = c.integer_as({"d_model", "hidden_size"});
    const i64 D = c.integer_as_or({"d_kv", "head_dim"}, 64);
    const i64 H = c.integer_as({"num_heads", "num_attention_heads"});
    heads_ = {H, H, D};
    inner_ = c.integer("d_ff");
    encoder_.layers = c.integer_as({"num_layers", "num_hidden_layers"}, 0);
    n_layers_ = decoder_.layers = c.integer_or("num_decoder_layers", encoder_.layers, 0);
    max_length_ = c.integer_or("n_positions", 512);  // trained for; no limit
    relative_positions_ = true;
    encoder_.buckets = decoder_.buckets =
        read_relative_buckets(c, "relative_attention_num_buckets", "relative_attention_max_distance");
    encoder_.buckets.bidirectional = true;
    read_activation(c, multilingual ? "gated-gelu" : "relu");
    dropout_ = c.rate_or("dropout_rate", 0.1);
    eps_ = c.positive_or("layer_norm_epsilon", 1e-6);
    // T5 1.0 ties the head to the embedding and scales its input. With tie_word_embeddings: false (1.1) it
    // does neither. transformers 5 has a key for each. mT5 never scales.
    const bool tied = c.boolean_or("tie_word_embeddings", true);
    scaled_ = family_ != "mt5" && c.boolean_or("scale_decoder_outputs", tied);
    decoder_start_token_id_ = c.token_or("decoder_start_token_id", multilingual ? 0 : -1, vocab_size_);
    pad_token_id_ = c.token_or("pad_token_id", 0, vocab_size_);
    const double factor = c.positive_or("initializer_factor", 1);
    c.expect("is_encoder_decoder", {"true"});
    c.expect("is_decoder", {"false"});
    c.inert({"classifier_dropout", "output_past"});  // of another task's head; left by early versions
    c.finish();

    SpecBuilder b(params_);
    b.embedding("shared.weight", vocab_size_, width_, factor);
    declare(b, encoder_, factor);
    declare(b, decoder_, factor);
    for (const Stack* s : {&encoder_, &decoder_}) b.tie(s->name + ".embed_tokens.weight", "shared.weight");
    if (tied) {
      b.tie("lm_head.weight", "shared.weight");
    } else {
      b.linear("lm_head", vocab_size_, width_, false, factor).role = Role::head;
    }
    config_json_ = c.dump();
  }

  Tensor encode_memory(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    ApplyOptions own = o;
    own.cache = nullptr;
    return run(
        p, encoder_, in.input_ids, own,
        [this, mask = in.key_mask, own](const ParamTree& q, i64 i, const Tensor& x, const Tensor& bias) {
          const Tensor y = attend_to_itself(q, encoder_, i, x, mask, bias, own);
          return feed_forward(q, layer(encoder_, i, 1), i, y, own);
        });
  }

  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    Tensor x = run(p, decoder_, in.input_ids, o,
                   [this, in, o](const ParamTree& q, i64 i, const Tensor& h, const Tensor& bias) {
                     const Tensor y = attend_to_itself(q, decoder_, i, h, in.key_mask, bias, o);
                     const Tensor z = attend_to_memory(q, i, y, in, o);
                     return feed_forward(q, layer(decoder_, i, 2), i, z, o);
                   });
    Scope s("lm_head");
    x = head_input(o, x);
    if (!o.head) return x;
    if (scaled_) x = scale(x, 1 / std::sqrt(static_cast<double>(width_)));
    return dense(p, "lm_head", x, o);
  }

  // Published checkpoints hold a table that no version of the model uses.
  std::string canonical_name(const std::string& stored) const override {
    return stored == "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight" ? "" : stored;
  }

  std::map<std::string, std::string> untied_config() const override {
    if (family_ == "mt5") return Model::untied_config();
    return {{"tie_word_embeddings", "false"}, {"scale_decoder_outputs", scaled_ ? "true" : "false"}};
  }

 private:
  struct Stack {
    std::string name;
    bool decoder;
    i64 layers = 0;
    RelativeBuckets buckets{};
  };

  static std::string block(const Stack& s, i64 i) { return fmt::format("{}.block.{}", s.name, i); }
  // Part k of block i: 0 attention, 1 cross-attention (decoder only), last the MLP.
  static std::string layer(const Stack& s, i64 i, int k) {
    return fmt::format("{}.layer.{}.", block(s, i), k);
  }

  // feed_forward_proj: "relu", "gated-gelu", ...; "gated-gelu" means the tanh form. As in transformers, the
  // keys derived from it take precedence if a config has them.
  void read_activation(ModelConfig& c, const char* fallback) {
    const std::string proj = c.text_or("feed_forward_proj", fallback);
    const bool gated = proj.starts_with("gated-");
    const std::string name = gated ? proj.substr(6) : proj;
    if (!is_activation(name))
      c.fail("feed_forward_proj", fmt::format("expected ACTIVATION or gated-ACTIVATION; activations: {}",
                                              fmt::join(activation_names(), ", ")));
    activation_ = c.activation_or("dense_act_fn", proj == "gated-gelu" ? "gelu_new" : name);
    gated_ = c.boolean_or("is_gated_act", gated);
  }

  void declare(SpecBuilder& b, const Stack& s, double factor) {
    const i64 H = heads_.n_head, D = heads_.head_dim;
    const HeadsOf q{0, H, H, D, false}, kv{0, H, H, D, true}, o{1, H, H, D, false};
    const auto power = [factor](i64 n) { return factor / std::sqrt(static_cast<double>(n)); };
    const auto norm = [&](const std::string& name) {
      b.add(name + ".weight", {width_}, ParamKind::norm, {Init::Kind::constant, factor});
    };
    const auto attention = [&](const std::string& a) {
      b.linear(a + ".q", H * D, width_, false, power(width_ * D), false, q);
      b.linear(a + ".k", H * D, width_, false, power(width_), false, kv);
      b.linear(a + ".v", H * D, width_, false, power(width_), false, kv);
      b.linear(a + ".o", width_, H * D, false, power(H * D), false, o);
    };
    for (i64 i = 0; i < s.layers; ++i) {
      const std::string first = layer(s, i, 0);
      attention(first + "SelfAttention");
      if (i == 0 || own_tables_) b.head_table(table_of(s, i), s.buckets.count, H, power(width_));
      norm(first + "layer_norm");
      if (s.decoder) {
        attention(layer(s, i, 1) + "EncDecAttention");
        norm(layer(s, i, 1) + "layer_norm");
      }
      const std::string mlp = layer(s, i, s.decoder ? 2 : 1) + "DenseReluDense.";
      if (gated_) {
        b.linear(mlp + "wi_0", inner_, width_, false, power(width_)).role = Role::first;
        b.linear(mlp + "wi_1", inner_, width_, false, power(width_)).role = Role::first;
      } else {
        b.linear(mlp + "wi", inner_, width_, false, power(width_)).role = Role::first;
      }
      b.linear(mlp + "wo", width_, inner_, false, power(inner_)).role = Role::second;
      norm(layer(s, i, s.decoder ? 2 : 1) + "layer_norm");
    }
    norm(s.name + ".final_layer_norm");
  }

  static std::string table_of(const Stack& s, i64 i) {
    return layer(s, i, 0) + "SelfAttention.relative_attention_bias.weight";
  }

  // Embeddings, blocks, last norm. apply_block(params, i, x, bias) is block i.
  template <class Block>
  Tensor run(const ParamTree& p, const Stack& s, const Tensor& ids, const ApplyOptions& o,
             const Block& apply_block) const {
    Scope scope(s.name.c_str());
    Tensor x, bias;
    {
      Scope inner("embedding");
      x = residual(o, embedding(p["shared.weight"], ids));
      x = activation(o, "embedding", dropout(o, s.name + "_embedding", dropout_, x));
    }
    const i64 T = ids.size(1), held = s.decoder && o.cache ? o.cache->length() : 0;
    const auto bias_of = [T, held, buckets = s.buckets](const Tensor& table) {
      Scope inner("position_bias");
      return relative_bias(table, buckets, T, held + T);
    };
    if (s.layers > 0 && !own_tables_) bias = bias_of(p[table_of(s, 0)]);
    for (i64 i = 0; i < s.layers; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      x = run_block(
          p, o, block(s, i), x,
          [apply_block, i, bias, bias_of, table = table_of(s, i)](const ParamTree& own, const Tensor& h) {
            return apply_block(own, i, h, bias.defined() ? bias : bias_of(own[table]));
          });
      x = activation(o, i, "", x);
    }
    x = rms_norm(p, s.name + ".final_layer_norm", x, eps_);
    x = activation(o, "final_norm", gather_tokens(o, dropout(o, s.name + "_out", dropout_, x)));
    if (o.hidden_states) o.hidden_states->push_back(x);
    return x;
  }

  AttentionBlock attention(const std::string& a, bool causal) const {
    return {a + ".q", a + ".k", a + ".v",
            a + ".o", heads_,   {.scale = 1, .causal = causal, .dropout = dropout_}};
  }

  Tensor attend_to_itself(const ParamTree& p, const Stack& s, i64 i, const Tensor& x, const Tensor& mask,
                          const Tensor& bias, const ApplyOptions& o) const {
    Scope scope("attention");
    const std::string h = layer(s, i, 0);
    const Tensor y = self_attention(p, attention(h + "SelfAttention", s.decoder), o, i,
                                    rms_norm(p, h + "layer_norm", x, eps_), mask, {}, bias);
    return x + dropout(o, "attention_out", dropout_, residual(o, activation(o, i, ".attention", y)));
  }

  Tensor attend_to_memory(const ParamTree& p, i64 i, const Tensor& x, const DecoderInputs& in,
                          const ApplyOptions& o) const {
    Scope scope("cross_attention");
    const std::string h = layer(decoder_, i, 1);
    const Tensor y = cross_attention(p, attention(h + "EncDecAttention", false), o, i,
                                     rms_norm(p, h + "layer_norm", x, eps_), in.memory, in.memory_mask);
    return x + dropout(o, "cross_attention_out", dropout_, residual(o, y));
  }

  Tensor feed_forward(const ParamTree& p, const std::string& h, i64 i, const Tensor& x,
                      const ApplyOptions& o) const {
    Scope scope("mlp");
    const Tensor m = gather_tokens(o, rms_norm(p, h + "layer_norm", x, eps_));
    const std::string mlp = h + "DenseReluDense.";
    const std::vector<LayerName> first =
        gated_ ? std::vector<LayerName>{mlp + "wi_0", mlp + "wi_1"} : std::vector<LayerName>{mlp + "wi"};
    const Tensors inner = dense_layers(p, first, m, o);
    Tensor f = gated_ ? activate_gated(activation_, inner[0], inner[1]) : activate(activation_, inner[0]);
    f = activation(o, i, ".mlp", dense(p, mlp + "wo", dropout(o, "mlp", dropout_, f), o));
    return x + dropout(o, "mlp_out", dropout_, residual(o, f));
  }

  i64 width_, inner_;
  HeadGeometry heads_;
  Stack encoder_{"encoder", false}, decoder_{"decoder", true};
  std::string activation_;
  bool gated_, scaled_, own_tables_;
  double dropout_, eps_;
};

}  // namespace

std::unique_ptr<Model> make_t5(ModelConfig& c) { return std::make_unique<T5>(c); }

}  // namespace redco
