// BERT (Devlin et al. 2019) and RoBERTa (Liu et al. 2019): an encoder with norms after each part and three
// embedding tables, with a masked-LM or a classification head. They differ in names, heads and position ids.
// B batch, S tokens.
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "models/attention_block.h"
#include "models/families.h"
#include "models/positions.h"
#include "models/spec_builder.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/shape.h"

namespace redco {

namespace {

class Bert : public Model {
 public:
  explicit Bert(ModelConfig& c) {
    family_ = c.text_or("model_type", "bert");
    roberta_ = family_ == "roberta";
    read_task(c);
    vocab_size_ = c.integer("vocab_size");
    padding_row_ = c.mentions("pad_token_id") ? c.padding_row(vocab_size_) : roberta_ ? 1 : 0;
    if (roberta_ && padding_row_ < 0)
      c.fail("pad_token_id", "expected a token's id; positions are counted from it");
    pad_token_id_ = static_cast<i32>(padding_row_);
    const i64 rows = c.integer_or("max_position_embeddings", 512);
    // RoBERTa's positions begin after the padding id.
    max_length_ = roberta_ ? rows - padding_row_ - 1 : rows;
    if (max_length_ < 1)
      c.fail("max_position_embeddings",
             fmt::format("no position is left after pad_token_id={}", padding_row_));
    const i64 types = c.integer_or("type_vocab_size", 2);
    width_ = hidden_size_ = c.integer_or("hidden_size", 768);
    n_layers_ = c.integer_or("num_hidden_layers", 12, 0);
    const i64 H = c.integer_or("num_attention_heads", 12), inner = c.integer_or("intermediate_size", 3072);
    if (width_ % H != 0)
      c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", width_));
    heads_ = {H, H, width_ / H};
    activation_ = c.activation_or("hidden_act", "gelu");
    dropout_ = c.rate_or("hidden_dropout_prob", 0.1);
    attention_dropout_ = c.rate_or("attention_probs_dropout_prob", 0.1);
    head_dropout_ = c.rate_or("classifier_dropout", dropout_);
    eps_ = c.positive_or("layer_norm_eps", 1e-12);
    const double std = c.number_or("initializer_range", 0.02);
    if (task_ == ModelTask::masked_lm) c.expect("tie_word_embeddings", {"true"});
    c.expect("is_decoder", {"false"});
    c.expect("position_embedding_type", {"\"absolute\""});
    // Early versions wrote these keys into published configs.
    c.inert({"tie_word_embeddings", "directionality", "pooler_fc_size", "pooler_num_attention_heads",
             "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type", "output_past"});
    const i64 labels = c.labels();
    if (task_ == ModelTask::sequence_classification) num_labels_ = labels;
    problem_type_ = c.text_or("problem_type", "");
    c.finish();

    SpecBuilder b(params_);
    const HeadsOf q{0, H, H, width_ / H, false}, kv{0, H, H, width_ / H, true}, o{1, H, H, width_ / H, false};
    b.embedding(at("embeddings.word_embeddings.weight"), vocab_size_, width_, std, padding_row_);
    b.positions(at("embeddings.position_embeddings.weight"), rows, width_, std, roberta_ ? padding_row_ : -1);
    b.embedding(at("embeddings.token_type_embeddings.weight"), types, width_, std);
    b.norm(at("embeddings.LayerNorm"), width_, true);
    for (i64 i = 0; i < n_layers_; ++i) {
      const std::string h = layer(i);
      b.linear(h + ".attention.self.query", width_, width_, true, std, false, q);
      b.linear(h + ".attention.self.key", width_, width_, true, std, false, kv);
      b.linear(h + ".attention.self.value", width_, width_, true, std, false, kv);
      b.linear(h + ".attention.output.dense", width_, width_, true, std, false, o);
      b.norm(h + ".attention.output.LayerNorm", width_, true);
      b.linear(h + ".intermediate.dense", inner, width_, true, std).role = Role::first;
      b.linear(h + ".output.dense", width_, inner, true, std).role = Role::second;
      b.norm(h + ".output.LayerNorm", width_, true);
    }
    if (task_ == ModelTask::masked_lm) {
      const auto [head, dense, norm] = masked_head();
      b.linear(head + dense, width_, width_, true, std);
      b.norm(head + norm, width_, true);
      b.add(head + "bias", {vocab_size_}, ParamKind::bias, {Init::Kind::zeros, 0});
      b.tie(head + "decoder.weight", at("embeddings.word_embeddings.weight"));
      b.tie(head + "decoder.bias", head + "bias");
    } else {
      const auto [dense, out] = class_head();
      b.linear(dense, width_, width_, true, std);
      b.linear(out, labels, width_, true, std);
    }
    config_json_ = c.dump();
  }

  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    Tensor x;
    {
      Scope s("embedding");
      x = residual(o, embed(p, in));
      x = layer_norm(p, at("embeddings.LayerNorm"), x, eps_, NormResult::stream);
      x = dropout(o, "embedding", dropout_, x);
    }
    for (i64 i = 0; i < n_layers_; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      x = run_block(p, o, layer(i), x,
                    [this, mask = in.key_mask, o, i](const ParamTree& own, const Tensor& h) {
                      return block(own, mask, o, i, h);
                    });
    }
    if (o.hidden_states) o.hidden_states->push_back(x);
    x = gather_tokens(o, x);
    if (!o.head) return x;
    return task_ == ModelTask::masked_lm ? masked_logits(p, x, o) : class_logits(p, x, o);
  }

  // Handles old names of norms, names without the prefix, buffers, and heads of BERT's pre-training that this
  // model does not have.
  std::string canonical_name(const std::string& stored) const override {
    std::string name = stored;
    for (const char* start : {"embeddings.", "encoder.", "pooler."})
      if (name.starts_with(start)) name = at(name);
    if (name.ends_with("LayerNorm.gamma")) name.replace(name.size() - 5, 5, "weight");
    if (name.ends_with("LayerNorm.beta")) name.replace(name.size() - 4, 4, "bias");
    if (name == at("embeddings.position_ids") || name == at("embeddings.token_type_ids")) return "";
    if (name.starts_with("cls.seq_relationship.")) return "";
    const bool pooled = task_ == ModelTask::sequence_classification && !roberta_;
    if (name.starts_with(at("pooler.")) && !pooled) return "";
    return name;
  }

 private:
  std::string at(const std::string& rest) const { return family_ + "." + rest; }
  std::string layer(i64 i) const { return at(fmt::format("encoder.layer.{}", i)); }
  struct MaskedHead {
    std::string prefix, dense, norm;
  };
  MaskedHead masked_head() const {
    if (roberta_) return {"lm_head.", "dense", "layer_norm"};
    return {"cls.predictions.", "transform.dense", "transform.LayerNorm"};
  }
  struct ClassHead {
    std::string dense, out;
  };
  ClassHead class_head() const {
    if (roberta_) return {"classifier.dense", "classifier.out_proj"};
    return {at("pooler.dense"), "classifier"};
  }

  // The first of `architectures`; a masked LM if the config has none.
  void read_task(ModelConfig& c) {
    const auto names = nlohmann::json::parse(c.json("architectures"));
    const std::string prefix = roberta_ ? "Roberta" : "Bert";
    const std::string masked = prefix + "ForMaskedLM", classes = prefix + "ForSequenceClassification";
    std::string name = masked;
    if (!names.is_null() && !names.empty()) {
      if (!names.is_array() || !names[0].is_string()) c.fail("architectures", "expected a list of names");
      name = names[0];
    }
    if (name != masked && name != classes)
      c.fail("architectures", fmt::format("not supported; supported: {}, {}", masked, classes));
    task_ = name == masked ? ModelTask::masked_lm : ModelTask::sequence_classification;
  }

  Tensor embed(const ParamTree& p, const EncoderInputs& in) const {
    const Tensor& ids = in.input_ids;
    const auto padding = roberta_ ? std::optional<i32>(pad_token_id_) : std::nullopt;
    const Tensor positions =
        in.positions.defined() ? in.positions : row_positions(ids, roberta_ ? padding_row_ + 1 : 0, padding);
    const Tensor types = in.token_type_ids.defined() ? in.token_type_ids : full_ids_like(ids, 0);
    return add(
        {embedding(p[at("embeddings.word_embeddings.weight")], ids, padding_row_),
         embedding(p[at("embeddings.token_type_embeddings.weight")], types),
         embedding(p[at("embeddings.position_embeddings.weight")], positions, roberta_ ? padding_row_ : -1)});
  }

  Tensor block(const ParamTree& p, const Tensor& mask, const ApplyOptions& o, i64 i, const Tensor& x0) const {
    const std::string h = layer(i), a = h + ".attention.self.";
    Tensor x = x0;
    {
      Scope s("attention");
      const AttentionSettings settings{.scale = 1 / std::sqrt(static_cast<double>(heads_.head_dim)),
                                       .causal = false,
                                       .dropout = attention_dropout_};
      const AttentionBlock attention = {a + "query", a + "key", a + "value", h + ".attention.output.dense",
                                        heads_,      settings};
      const Tensor y = self_attention(p, attention, o, i, x, mask);
      x = x + dropout(o, "attention_out", dropout_, residual(o, y));
      x = layer_norm(p, h + ".attention.output.LayerNorm", x, eps_, NormResult::stream);
    }
    Scope s("mlp");
    const Tensor f = activate(activation_, dense(p, h + ".intermediate.dense", gather_tokens(o, x), o));
    const Tensor y = residual(o, dense(p, h + ".output.dense", f, o));
    return layer_norm(p, h + ".output.LayerNorm", x + dropout(o, "mlp_out", dropout_, y), eps_,
                      NormResult::stream);
  }

  // [B, S, C] -> [B, S, V]
  Tensor masked_logits(const ParamTree& p, const Tensor& x, const ApplyOptions& o) const {
    Scope s("lm_head");
    const auto [head, name, norm] = masked_head();
    Tensor y = activate(roberta_ ? "gelu" : activation_, dense(p, head + name, x, o));
    y = layer_norm(p, head + norm, y, eps_);
    return dense(p, head + "decoder", y, o);
  }

  // [B, S, C] -> [B, labels], from the first token.
  Tensor class_logits(const ParamTree& p, const Tensor& x, const ApplyOptions& o) const {
    Scope s("classifier");
    const auto [pool, out] = class_head();
    Tensor y = reshape(narrow(x, 1, 0, 1), {x.size(0), width_});
    if (roberta_) y = dropout(o, "classifier_in", head_dropout_, y);
    y = tanh(dense(p, pool, y, o));
    return dense(p, out, dropout(o, "classifier", head_dropout_, y), o);
  }

  bool roberta_;
  i64 width_, padding_row_;
  HeadGeometry heads_;
  std::string activation_;
  double dropout_, attention_dropout_, head_dropout_, eps_;
};

}  // namespace

std::unique_ptr<Model> make_bert(ModelConfig& c) { return std::make_unique<Bert>(c); }

}  // namespace redco
