// Performer (Choromanski et al. 2021): an encoder with attention in linear time and a classification head.
// FAVOR+ replaces exp(q k) by phi(q) phi(k) with positive random features, so that the sums over keys are
// computed once for all queries. Norms before each part; learned positions. B batch, S tokens, C channels, H
// heads, D head width, M random features.
#include <fmt/format.h>

#include <cmath>

#include "models/families.h"
#include "models/positions.h"
#include "models/spec_builder.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/linear.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

class Performer : public Model {
 public:
  explicit Performer(ModelConfig& c) {
    family_ = "performer";
    task_ = ModelTask::sequence_classification;
    attends_ = false;
    vocab_size_ = c.integer("vocab_size");
    max_length_ = c.integer_or("max_position_embeddings", 512);
    width_ = hidden_size_ = c.integer("hidden_size");
    n_layers_ = c.integer("num_hidden_layers", 0);
    const i64 H = c.integer("num_attention_heads"), inner = c.integer("intermediate_size");
    if (width_ % H != 0)
      c.fail("num_attention_heads", fmt::format("expected a divisor of hidden_size={}", width_));
    const i64 D = width_ / H;
    heads_ = {H, H, D};
    // The authors' default: D ln D features suffice for a uniform approximation.
    const double d = static_cast<double>(D);
    features_ = c.integer_or("num_random_features", std::max<i64>(1, static_cast<i64>(d * std::log(d))));
    kernel_epsilon_ = c.positive_or("kernel_epsilon", 1e-4);
    activation_ = c.activation_or("hidden_act", "gelu");
    dropout_ = c.rate_or("hidden_dropout_prob", 0.1);
    head_dropout_ = c.rate_or("classifier_dropout", dropout_);
    eps_ = c.positive_or("layer_norm_eps", 1e-12);
    const double std = c.number_or("initializer_range", 0.02);
    padding_row_ = c.padding_row(vocab_size_);
    pad_token_id_ = static_cast<i32>(padding_row_);
    c.expect("architectures", {"[\"PerformerForSequenceClassification\"]", "[]"});
    problem_type_ = c.text_or("problem_type", "");
    num_labels_ = c.labels();
    c.finish();

    SpecBuilder b(params_);
    const HeadsOf q{0, H, H, D, false}, kv{0, H, H, D, true}, o{1, H, H, D, false};
    b.embedding("performer.embeddings.word_embeddings.weight", vocab_size_, width_, std, padding_row_);
    b.positions("performer.embeddings.position_embeddings.weight", max_length_, width_, std);
    for (i64 i = 0; i < n_layers_; ++i) {
      const std::string h = layer(i);
      b.norm(h + ".attention.norm", width_, true);
      b.linear(h + ".attention.query", width_, width_, true, std, false, q);
      b.linear(h + ".attention.key", width_, width_, true, std, false, kv);
      b.linear(h + ".attention.value", width_, width_, true, std, false, kv);
      b.linear(h + ".attention.output", width_, width_, true, std, false, o);
      // M vectors of D numbers, drawn once and shared by the heads. The buffer is 1-D, so that no rule shards
      // it.
      b.buffer(h + ".attention.random_features", {features_ * D}, ParamKind::other);
      params_.specs.back().init = {.kind = Init::Kind::orthogonal, .width = D};
      b.norm(h + ".mlp.norm", width_, true);
      b.linear(h + ".mlp.fc1", inner, width_, true, std).role = Role::first;
      b.linear(h + ".mlp.fc2", width_, inner, true, std).role = Role::second;
    }
    b.norm("performer.norm", width_, true);
    b.linear("classifier", num_labels_, width_, true, std);
    config_json_ = c.dump();
  }

  // [B, labels], from the mean of the tokens.
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    Tensor x, seen;  // seen [B, S]: 1 for a token, 0 for padding
    {
      Scope s("embedding");
      const std::string e = "performer.embeddings.";
      x = residual(o, embedding(p[e + "word_embeddings.weight"], in.input_ids, padding_row_) +
                          embedding(p[e + "position_embeddings.weight"],
                                    in.positions.defined() ? in.positions : row_positions(in.input_ids, 0)));
      x = dropout(o, "embedding", dropout_, x);
      if (in.key_mask.defined())
        seen = reshape(embedding(from_values({2, 1}, std::span<const float>(kSeen)), in.key_mask),
                       {x.size(0), x.size(1)});
    }
    for (i64 i = 0; i < n_layers_; ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      x = run_block(p, o, layer(i), x, [this, seen, o, i](const ParamTree& own, const Tensor& h) {
        return block(own, seen, o, i, h);
      });
    }
    x = gather_tokens(o, layer_norm(p, "performer.norm", x, eps_));
    if (o.hidden_states) o.hidden_states->push_back(x);
    if (!o.head) return x;
    Scope s("classifier");
    return dense(p, "classifier", dropout(o, "classifier", head_dropout_, pooled(x, seen)), o);
  }

 private:
  static constexpr float kSeen[] = {0, 1};

  static std::string layer(i64 i) { return fmt::format("performer.encoder.layer.{}", i); }

  // Mean over tokens: [B, S, C] -> [B, C].
  static Tensor pooled(const Tensor& x, const Tensor& seen) {
    if (!seen.defined()) return mean(x, {1});
    const i64 B = x.size(0), S = x.size(1);
    const Tensor sums = reshape(matmul(reshape(seen, {B, 1, S}), x), {B, x.size(2)});
    return sums / sum(seen, {1}, true);
  }

  // phi of x [B, H, S, D], up to a factor that cancels in attention: exp(w x - |x|^2 / 2 - c) + epsilon, [B,
  // H, S, M]. c is the maximum of w x over one query or over all keys, so that exp does not overflow.
  Tensor features(const ParamTree& p, i64 i, const Tensor& x, bool keys) const {
    const Tensor w = reshape(p[layer(i) + ".attention.random_features"], {features_, heads_.head_dim});
    const Tensor y = linear(x, w) - 0.5 * sum(square(x), {-1}, true);
    Tensor largest = stop_gradient(y);
    const i64 B = x.size(0), H = x.size(1), S = x.size(2);
    largest =
        keys ? reshape(max_last(reshape(largest, {B, H, S * features_})), {B, H, 1, 1}) : max_last(largest);
    return add_scalar(exp(y - largest), kernel_epsilon_);
  }

  // [B, S, C] -> [B, S, C] in time linear in S.
  Tensor attention(const ParamTree& p, const Tensor& seen, const ApplyOptions& o, i64 i,
                   const Tensor& x) const {
    const std::string a = layer(i) + ".attention.";
    const std::vector<HeadProjection> layers = {{a + "query"}, {a + "key", true}, {a + "value", true}};
    Tensors projected = project_heads(p, layers, x, heads_, p[a + "query.weight"], o);
    for (Tensor& t : projected) t = transpose(t, 1, 2);  // [B, H, S, D]
    // exp(q k / sqrt(D)): queries and keys each get the square root of the scale.
    const double half = 1 / std::sqrt(std::sqrt(static_cast<double>(heads_.head_dim)));
    const Tensor q = features(p, i, half * projected[0], false);
    Tensor k = features(p, i, half * projected[1], true);
    const Tensor& v = projected[2];
    const i64 B = x.size(0), S = x.size(1);
    if (seen.defined()) k = k * reshape(seen, {B, 1, S, 1});
    const Tensor sums = matmul(k, v, true);            // [B, H, M, D]
    const Tensor total = sum(k, {2}, true);            // [B, H, 1, M]
    const Tensor weight = sum(q * total, {-1}, true);  // [B, H, S, 1]
    const Tensor y = transpose(matmul(q, sums) / weight, 1, 2);
    return dense(p, a + "output", reshape(y, {B, S, width_}), o);
  }

  Tensor block(const ParamTree& p, const Tensor& seen, const ApplyOptions& o, i64 i, const Tensor& x0) const {
    const std::string h = layer(i);
    Tensor x = x0;
    {
      Scope s("attention");
      const Tensor a = gather_tokens(o, layer_norm(p, h + ".attention.norm", x, eps_));
      x = x + dropout(o, "attention_out", dropout_, residual(o, attention(p, seen, o, i, a)));
    }
    Scope s("mlp");
    const Tensor m = gather_tokens(o, layer_norm(p, h + ".mlp.norm", x, eps_));
    const Tensor f = activate(activation_, dense(p, h + ".mlp.fc1", m, o));
    return x + dropout(o, "mlp_out", dropout_, residual(o, dense(p, h + ".mlp.fc2", f, o)));
  }

  std::string activation_;
  i64 width_, features_, padding_row_;
  HeadGeometry heads_;
  double dropout_, head_dropout_, eps_, kernel_epsilon_;
};

}  // namespace

std::unique_ptr<Model> make_performer(ModelConfig& c) { return std::make_unique<Performer>(c); }

}  // namespace redco
