// Legend: B batch, S tokens, C width.
#include "models/encoder/encoder.h"

#include <fmt/ranges.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "models/attention_block.h"
#include "models/positions.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/reduce.h"
#include "ops/shape.h"

namespace redco {

namespace {

class Encoder : public TextEncoder {
 public:
  Encoder(const ModelConfig& c, EncoderArchitecture architecture) : arch_(std::move(architecture)) {
    if (arch_.embedding_width == 0) arch_.embedding_width = arch_.width;
    family_ = arch_.family;
    task_ = arch_.task;
    vocab_size_ = arch_.vocab_size;
    max_length_ = arch_.max_length;
    hidden_size_ = arch_.width;
    n_layers_ = static_cast<i64>(arch_.layers.size());
    pad_token_id_ = static_cast<i32>(arch_.padding_row);
    if (task_ == ModelTask::multiple_choice) {
      if (arch_.choices) arch_.classes = arch_.choices;
      arch_.labels = 1;
    }
    if (task_ == ModelTask::question_answering) arch_.labels = 2;
    if (pools() || scores_tokens()) num_labels_ = arch_.labels;
    problem_type_ = arch_.problem_type;
    declare();
    config_json_ = c.dump();
  }

  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    const EncoderArchitecture& s = arch_;
    Tensor x;
    {
      Scope scope("embedding");
      x = activation(o, "embedding", embed(p, in, o));
    }
    const Tensor rotary = s.ropes.empty()          ? Tensor()
                          : in.positions.defined() ? in.positions
                                                   : row_positions(in.input_ids, 0);
    for (size_t i = 0; i < s.layers.size(); ++i) {
      if (o.hidden_states) o.hidden_states->push_back(x);
      const Tensor first = x;
      x = run_block(p, o, scope_of(i), x,
                    [this, mask = in.key_mask, rotary, o, i](const ParamTree& own, const Tensor& h) {
                      return block(own, mask, rotary, o, i, h);
                    });
      if (i == 0 && s.convolution)
        x = add_convolution(p, at(s.names.convolution), *s.convolution, s.norm, o, first, x, in.key_mask);
      x = activation(o, static_cast<i64>(i), "", x);
    }
    if (o.hidden_states && s.states_before_norm) o.hidden_states->push_back(x);
    if (!s.names.final_norm.empty()) x = norm(p, at(s.names.final_norm), x, s.norm, NormResult::stream);
    x = activation(o, "final_norm", x);
    if (o.hidden_states && !s.states_before_norm) o.hidden_states->push_back(x);
    x = gather_tokens(o, x);
    if (!o.head || task_ == ModelTask::feature_extraction) return x;
    if (scores_tokens()) return token_logits(p, x, o);
    return task_ == ModelTask::masked_lm ? masked_logits(p, x, o) : class_logits(p, x, in.key_mask, o);
  }

  // Handles old names of norms, names without the prefix, buffers, and heads that this model does not have.
  std::string canonical_name(const std::string& stored) const override {
    const std::string& prefix = arch_.names.prefix;
    std::string name = stored;
    if (arch_.family == "gte" && name.starts_with("new.")) name.replace(0, 3, "gte");  // the first releases
    for (const char* start : {"embeddings.", "encoder.", "transformer.", "layers.", "pooler."})
      if (!name.starts_with(prefix) && name.starts_with(start) && !is_head(name)) name = prefix + name;
    if (!has_parameter(name) && has_parameter(prefix + name)) name = prefix + name;
    if (name.ends_with("LayerNorm.gamma")) name.replace(name.size() - 5, 5, "weight");
    if (name.ends_with("LayerNorm.beta")) name.replace(name.size() - 4, 4, "bias");
    for (const char* buffer : {"embeddings.position_ids", "embeddings.token_type_ids", "rotary_emb.inv_freq",
                               "rotary_embeddings.inv_freq", "encoder.embed_positions.weight"})
      if (name.ends_with(buffer)) return "";
    // Heads of pre-training.
    for (const char* head : {"cls.seq_relationship.", "discriminator_predictions.", "sop_classifier.",
                             "mask_predictions.", "lm_predictions."})
      if (name.starts_with(head) && !has_parameter(name)) return "";
    for (const char* head : {"pooler", "contact_head."})
      if (name.starts_with(prefix + head) && !has_parameter(name)) return "";
    return name;
  }

 private:
  // Whether the head has one score per class for each row, or for each token.
  bool pools() const {
    return task_ == ModelTask::sequence_classification || task_ == ModelTask::multiple_choice;
  }
  bool scores_tokens() const {
    return task_ == ModelTask::token_classification || task_ == ModelTask::question_answering;
  }
  const TokenHead& token_head() const {
    return task_ == ModelTask::question_answering ? *arch_.spans : *arch_.tags;
  }
  std::string at(const std::string& rest) const { return arch_.names.prefix + rest; }
  std::string layer(size_t i) const { return at(arch_.layers[i].name); }
  // Layers that share parameters draw other random numbers.
  std::string scope_of(size_t i) const {
    for (size_t j = 0; j < arch_.layers.size(); ++j)
      if (j != i && arch_.layers[j].name == arch_.layers[i].name) return fmt::format("{} {}", layer(i), i);
    return layer(i);
  }
  bool has_parameter(const std::string& name) const {
    for (const ParamSpec& s : params_.specs)
      if (s.stored.name == name) return true;
    return false;
  }
  // Whether a name without prefix is that of the task's head.
  bool is_head(const std::string& name) const {
    return arch_.classes && (pools() || (scores_tokens() && token_head().dense)) &&
           name.starts_with(arch_.classes->dense + ".");
  }

  void declare() {
    const EncoderArchitecture& s = arch_;
    const EncoderNames& n = s.names;
    const i64 E = s.embedding_width;
    SpecBuilder b(params_);
    b.embedding(at(n.words) + ".weight", s.vocab_size, E, s.std, s.padding_row);
    if (s.position_rows > 0)
      b.positions(at(n.positions) + ".weight", s.position_rows, E, s.std,
                  s.positions_after_padding ? s.padding_row : -1);
    if (s.types > 0) b.embedding(at(n.types) + ".weight", s.types, E, s.std);
    if (!n.task.empty()) b.embedding(at(n.task) + ".weight", s.tasks, E, s.std);
    if (!n.embedding_norm.empty())
      declare_norm(b, at(n.embedding_norm), s.projects_before_norm ? s.width : E, s.norm);
    if (!n.project.empty()) b.linear(at(n.project), s.width, E, !s.projects_before_norm, s.std);
    if (s.disentangled) declare_position_table(b);
    if (s.buckets) b.head_table(at(n.relative_bias) + ".weight", s.buckets->count, s.heads.n_head, s.std);
    if (s.convolution) declare_convolution(b, at(n.convolution), *s.convolution, s.width, s.norm, s.std);
    std::set<std::string> declared;
    for (size_t i = 0; i < s.layers.size(); ++i)
      if (declared.insert(s.layers[i].name).second) declare_layer(b, i);
    if (!n.final_norm.empty()) declare_norm(b, at(n.final_norm), s.width, s.norm);
    declare_head(b);
  }

  // Files have the table and its norm also if no scores use them.
  void declare_position_table(SpecBuilder& b) {
    const std::string table = arch_.names.position_table, norm_name = arch_.names.position_table_norm;
    const i64 rows = 2 * arch_.disentangled->span, C = arch_.width;
    if (arch_.disentangled->positions()) {
      b.positions(at(table) + ".weight", rows, C, arch_.std);
      if (!norm_name.empty()) declare_norm(b, at(norm_name), C, arch_.norm);
      return;
    }
    if (!table.empty()) b.buffer(at(table) + ".weight", {rows, C}, ParamKind::embedding);
    if (norm_name.empty()) return;
    b.buffer(at(norm_name) + ".weight", {C}, ParamKind::norm);
    b.buffer(at(norm_name) + ".bias", {C}, ParamKind::bias);
  }

  void declare_layer(SpecBuilder& b, size_t i) {
    const EncoderArchitecture& s = arch_;
    const EncoderNames& n = s.names;
    const auto [H, K, D] = s.heads;
    const HeadsOf q{0, H, K, D, false}, kv{0, H, K, D, true}, o{1, H, K, D, false};
    const std::string h = layer(i) + ".";
    const i64 C = s.width;
    if (s.pre_norm && has_attention_norm(i)) declare_norm(b, h + n.attention_norm, C, s.norm);
    if (n.qkv.empty()) {
      b.linear(h + n.q, H * D, C, s.qkv_bias, s.std, false, q);
      b.linear(h + n.k, K * D, C, s.qkv_bias, s.std, false, kv);
      if (s.disentangled) declare_disentangled(b, h, *s.disentangled, C, s.std, q, kv);
      b.linear(h + n.v, K * D, C, s.qkv_bias, s.std, false, kv);
    } else {
      b.fused(h + n.qkv, {{"q", H * D, q}, {"k", K * D, kv}, {"v", K * D, kv}}, C, s.qkv_bias, s.std, false);
    }
    b.linear(h + n.out, C, H * D, s.out_bias, s.std, false, o);
    declare_norm(b, h + (s.pre_norm ? n.mlp_norm : n.attention_norm), C, s.norm);
    if (!n.gate_up.empty()) {
      std::vector<SpecBuilder::Part> parts = {{"gate", s.inner}, {"up", s.inner}};
      for (SpecBuilder::Part& part : parts) part.role = Role::first;
      if (s.up_first) std::swap(parts[0], parts[1]);
      b.fused(h + n.gate_up, parts, C, s.mlp_bias, s.std, false);
    } else {
      if (s.gated) b.linear(h + n.gate, s.inner, C, s.mlp_bias, s.std).role = Role::first;
      b.linear(h + n.up, s.inner, C, s.mlp_bias, s.std).role = Role::first;
    }
    b.linear(h + n.down, C, s.inner, s.mlp_bias || s.down_bias, s.std).role = Role::second;
    if (!s.pre_norm) declare_norm(b, h + n.mlp_norm, C, s.norm);
  }

  void declare_head(SpecBuilder& b) {
    const EncoderArchitecture& s = arch_;
    const i64 C = s.width, E = s.embedding_width;
    if (task_ == ModelTask::masked_lm) {
      const MaskedHead& m = *s.masked;
      if (!m.dense.empty()) {
        b.linear(m.dense, E, C, m.dense_bias, s.std);
        declare_norm(b, m.norm, E, s.norm);
      }
      if (!m.bias.empty()) b.add(m.bias, {s.vocab_size}, ParamKind::bias, {Init::Kind::zeros, 0});
      if (m.tied)
        b.tie(m.decoder + ".weight", at(s.names.words) + ".weight");
      else
        b.linear(m.decoder, s.vocab_size, E, false, s.std).role = Role::head;
      if (!m.bias.empty() && m.bias != m.decoder + ".bias") b.tie(m.decoder + ".bias", m.bias);
    } else if (pools()) {
      declare_dense(b);
      b.linear(s.classes->out, s.labels, C, true, s.std);
    } else if (scores_tokens()) {
      if (token_head().dense) declare_dense(b);
      b.linear(token_head().out, s.labels, C, true, s.std);
    } else if (!s.pooler.empty()) {
      b.idle_linear(at(s.pooler), C, C, s.std);
    }
  }

  // The hidden layer of a head.
  void declare_dense(SpecBuilder& b) const {
    const ClassHead& h = *arch_.classes;
    b.linear(h.dense, arch_.width, arch_.width, h.dense_bias, arch_.std);
    if (!h.norm.empty()) declare_norm(b, h.norm, arch_.width, arch_.norm);
  }

  bool has_attention_norm(size_t i) const { return arch_.first_norm || i > 0; }

  // See EncoderArchitecture::dropped_token. x [B, S, E].
  Tensor without_dropped(const EncoderInputs& in, const Tensor& x) const {
    if (arch_.dropped_token < 0) return x;
    constexpr double kShareOfTraining = 1 - 0.15 * 0.8;
    const i64 B = x.size(0), S = x.size(1);
    const DType type = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
    const Tensor tokens =
        to_float(in.key_mask.defined() ? in.key_mask : full_ids_like(in.input_ids, 1), type);
    const Tensor ids = to_float(in.input_ids, type);
    const Tensor dropped = compare(Binary::eq, ids, full({}, static_cast<double>(arch_.dropped_token), type));
    const Tensor share = 1.0 - sum(dropped, {1}) / sum(tokens, {1});  // [B]
    const Tensor factors = (1.0 - dropped) * kShareOfTraining / reshape(share, {B, 1});
    return x * cast(reshape(factors, {B, S, 1}), x.dtype());
  }

  Tensor embed(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const {
    const EncoderArchitecture& s = arch_;
    const EncoderNames& n = s.names;
    const Tensor& ids = in.input_ids;
    Tensors terms = {without_dropped(in, embedding(p[at(n.words) + ".weight"], ids, s.padding_row))};
    if (s.types > 0) {
      const Tensor types = in.token_type_ids.defined() ? in.token_type_ids : full_ids_like(ids, 0);
      terms.push_back(embedding(p[at(n.types) + ".weight"], types));
    }
    if (!n.task.empty()) terms.push_back(embedding(p[at(n.task) + ".weight"], full_ids_like(ids, 0)));
    if (s.position_rows > 0) {
      const bool after = s.positions_after_padding;
      const auto padding = after ? std::optional<i32>(pad_token_id_) : std::nullopt;
      const Tensor rows =
          in.positions.defined() ? in.positions : row_positions(ids, after ? s.padding_row + 1 : 0, padding);
      terms.push_back(embedding(p[at(n.positions) + ".weight"], rows, after ? s.padding_row : -1));
    }
    Tensor x = add(terms);
    if (s.projects_before_norm && !n.project.empty()) x = dense(p, at(n.project), x, o);
    x = residual(o, x);
    if (!n.embedding_norm.empty()) x = norm(p, at(n.embedding_norm), x, s.norm, NormResult::stream);
    if (s.masks_embedding && in.key_mask.defined()) {
      const DType type = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
      x = x * reshape(to_float(in.key_mask, type), {ids.size(0), ids.size(1), 1});
    }
    x = dropout(o, "embedding", s.embedding_dropout, x);
    return n.project.empty() || s.projects_before_norm
               ? x
               : residual(o, dense(p, at(n.project), gather_tokens(o, x), o));
  }

  Tensor block(const ParamTree& p, const Tensor& mask, const Tensor& rotary, const ApplyOptions& o, size_t i,
               const Tensor& x0) const {
    const EncoderArchitecture& s = arch_;
    const EncoderNames& n = s.names;
    const std::string h = layer(i) + ".";
    Tensor x = x0;
    {
      Scope scope("attention");
      const std::string norm_name = h + n.attention_norm;
      const Tensor a = s.pre_norm && has_attention_norm(i) ? norm(p, norm_name, x, s.norm) : x;
      const Tensor y = activation(o, static_cast<i64>(i), ".attention", attention(p, mask, rotary, o, i, a));
      x = x + dropout(o, "attention_out", s.dropout, residual(o, y));
      if (!s.pre_norm) x = norm(p, norm_name, x, s.norm, NormResult::stream);
    }
    Scope scope("mlp");
    const std::string norm_name = h + n.mlp_norm;
    const Tensor m = gather_tokens(o, s.pre_norm ? norm(p, norm_name, x, s.norm) : x);
    const Tensor y = activation(o, static_cast<i64>(i), ".mlp", mlp(p, i, m, o));
    x = x + dropout(o, "mlp_out", s.drops_mlp_output ? s.dropout : 0, residual(o, y));
    return s.pre_norm ? x : norm(p, norm_name, x, s.norm, NormResult::stream);
  }

  Tensor attention(const ParamTree& p, const Tensor& mask, const Tensor& rotary, const ApplyOptions& o,
                   size_t i, const Tensor& x) const {
    const EncoderArchitecture& s = arch_;
    const EncoderNames& n = s.names;
    const EncoderLayer& own = s.layers[i];
    const std::string h = layer(i) + ".";
    const bool fused = !n.qkv.empty();
    const i64 S = x.size(1);
    const RopeOptions rope = own.rope < 0 ? RopeOptions() : s.ropes[own.rope].at(rotary.size(1));
    const AttentionBlock a = {
        .q = fused ? LayerName(h + n.qkv, "q") : LayerName(h + n.q),
        .k = fused ? LayerName(h + n.qkv, "k") : LayerName(h + n.k),
        .v = fused ? LayerName(h + n.qkv, "v") : LayerName(h + n.v),
        .out = h + n.out,
        .heads = s.heads,
        .settings = {.scale = 1 / std::sqrt(static_cast<double>(s.heads.head_dim * s.score_terms)),
                     .causal = s.causal,
                     .window = own.reach < 0 ? 0 : own.reach + 1,
                     .dropout = s.attention_dropout,
                     .ahead = own.reach},
        .rope = own.rope < 0 ? nullptr : &rope};
    if (s.disentangled) {
      Tensor table;
      if (s.disentangled->positions()) {
        table = p[at(n.position_table) + ".weight"];
        if (!n.position_table_norm.empty()) table = norm(p, at(n.position_table_norm), table, s.norm);
      }
      return disentangled_attention(p, h, a, *s.disentangled, o, x, table, mask);
    }
    Tensor bias;
    if (s.buckets) bias = relative_bias(p[at(n.relative_bias) + ".weight"], *s.buckets, S, S);
    return self_attention(p, a, o, i, x, mask, rotary, bias);
  }

  Tensor mlp(const ParamTree& p, size_t i, const Tensor& x, const ApplyOptions& o) const {
    const EncoderArchitecture& s = arch_;
    const EncoderNames& n = s.names;
    const std::string h = layer(i) + ".";
    Tensor f;
    if (s.gated) {
      const bool fused = !n.gate_up.empty();
      const LayerName gate = fused ? LayerName(h + n.gate_up, "gate") : LayerName(h + n.gate);
      const LayerName up = fused ? LayerName(h + n.gate_up, "up") : LayerName(h + n.up);
      const Tensors inner = dense_layers(p, {gate, up}, x, o);
      f = activate_gated(s.activation, inner[0], inner[1]);
    } else {
      f = activate(s.activation, dense(p, h + n.up, x, o));
    }
    return dense(p, h + n.down, dropout(o, "mlp", s.inner_dropout, f), o);
  }

  // [B, S, C] -> [B, S, V]
  Tensor masked_logits(const ParamTree& p, const Tensor& x, const ApplyOptions& o) const {
    Scope scope("lm_head");
    const MaskedHead& m = *arch_.masked;
    if (m.dense.empty()) return dense(p, m.decoder, x, o);
    const Tensor y = activate(m.activation, dense(p, m.dense, x, o));
    return dense(p, m.decoder, norm(p, m.norm, y, arch_.norm), o);
  }

  // [B, S, C] -> [B, labels]
  Tensor class_logits(const ParamTree& p, const Tensor& x, const Tensor& mask, const ApplyOptions& o) const {
    Scope scope("classifier");
    const ClassHead& h = *arch_.classes;
    const auto pooled = [&](const Tensor& t) {
      return h.mean ? mean_of_tokens(t, mask) : reshape(narrow(t, 1, 0, 1), {t.size(0), arch_.width});
    };
    Tensor y = dropout(o, "classifier_in", h.input_dropout, h.pools_last ? x : pooled(x));
    y = head_layer(p, y, o);
    if (h.pools_last) y = pooled(y);
    return dense(p, h.out, dropout(o, "classifier", h.dropout, y), o);
  }

  // [B, S, C] -> [B, S, labels]
  Tensor token_logits(const ParamTree& p, const Tensor& x, const ApplyOptions& o) const {
    Scope scope("classifier");
    const TokenHead& h = token_head();
    const Tensor y = h.dense ? head_layer(p, x, o) : x;
    return dense(p, h.out, dropout(o, "classifier", h.dropout, y), o);
  }

  Tensor head_layer(const ParamTree& p, const Tensor& x, const ApplyOptions& o) const {
    const ClassHead& h = *arch_.classes;
    const Tensor y = activate(h.activation, dense(p, h.dense, x, o));
    return h.norm.empty() ? y : norm(p, h.norm, y, arch_.norm);
  }

  static Tensor mean_of_tokens(const Tensor& x, const Tensor& mask) {
    if (!mask.defined()) return mean(x, {1});
    const Tensor counts = reshape(to_float(mask, x.dtype() == DType::f64 ? DType::f64 : DType::f32),
                                  {mask.size(0), mask.size(1), 1});
    return sum(x * counts, {1}) / sum(counts, {1});
  }

  EncoderArchitecture arch_;
};

}  // namespace

std::unique_ptr<Model> make_encoder_model(ModelConfig& c, ReadEncoder read) {
  EncoderArchitecture architecture = read(c);
  if (architecture.task == ModelTask::masked_lm && !architecture.tied && architecture.masked->tied)
    c.fail("tie_word_embeddings", "not supported; supported: true");
  c.finish();
  return std::make_unique<Encoder>(c, std::move(architecture));
}

std::unique_ptr<TextEncoder> make_text_encoder(const ModelConfig& c, EncoderArchitecture architecture) {
  return std::make_unique<Encoder>(c, std::move(architecture));
}

void read_encoder_task(ModelConfig& c, const std::string& prefix, EncoderArchitecture& s) {
  const auto names = nlohmann::json::parse(c.json("architectures"));
  const std::string masked = prefix + "ForMaskedLM", classes = prefix + "ForSequenceClassification",
                    none = prefix + "Model";
  std::string name = masked;
  if (!names.is_null() && !names.empty()) {
    if (!names.is_array() || !names[0].is_string()) c.fail("architectures", "expected a list of names");
    name = names[0];
  }
  const std::map<std::string, ModelTask> tasks = {
      {masked, ModelTask::masked_lm},
      {classes, ModelTask::sequence_classification},
      {prefix + "ForTokenClassification", ModelTask::token_classification},
      {prefix + "ForQuestionAnswering", ModelTask::question_answering},
      {prefix + "ForMultipleChoice", ModelTask::multiple_choice},
      {none, ModelTask::feature_extraction}};
  const auto task = tasks.find(name);
  if (task == tasks.end()) {
    std::vector<std::string> known;
    for (const auto& [one, of] : tasks) known.push_back(one);
    c.fail("architectures", fmt::format("not supported; supported: {}", fmt::join(known, ", ")));
  }
  s.task = task->second;
  s.labels = c.labels();
  s.problem_type = c.text_or("problem_type", "");
  s.tied = c.boolean_or("tie_word_embeddings", true);
}

void add_encoder_layers(EncoderArchitecture& s, const std::string& name, i64 count) {
  for (i64 i = 0; i < count; ++i) s.layers.push_back({.name = fmt::format("{}.{}", name, i)});
}

}  // namespace redco
