#include <algorithm>
#include <nlohmann/json.hpp>

#include "models/config_tree.h"
#include "models/decoder/decoder.h"
#include "models/families.h"
#include "models/positions.h"
#include "nn/cache_forms.h"
#include "ops/create.h"
#include "ops/elementwise.h"
#include "ops/reduce.h"
#include "ops/scan.h"
#include "ops/shape.h"

namespace redco {

namespace {

// PREFIXForSequenceClassification: a linear layer `score` reads the last hidden state of each row's last
// token.
void read_score(ModelConfig& c, DecoderArchitecture& s) {
  s.names.head = "score";
  s.head_rows = c.labels();
  s.tied = s.head_bias = false;
  s.logit_scale = 1;
  s.logit_cap = 0;
  if (s.names.head_layer.empty()) return;
  s.names.head_layer = "head";  // ModernBERT's decoders
  s.names.head = "classifier";
  s.head_bias = s.head_layer.bias;
  s.head_dropout = c.rate_or("classifier_dropout", 0);
}

// PREFIXForTokenClassification: a linear layer reads the last hidden state of each token.
void read_token_scores(ModelConfig& c, DecoderArchitecture& s) {
  read_score(c, s);
  s.scores_tokens = true;
  for (const char* family : {"bloom", "falcon", "gpt2", "gpt_bigcode", "gpt_neox", "mpt"})
    if (s.family == family) s.names.head = "classifier";
  s.head_bias = c.boolean_or("token_classification_bias", true);
  const bool own = c.has("classifier_dropout");
  s.head_dropout = c.rate_or(own || !c.has("hidden_dropout") ? "classifier_dropout" : "hidden_dropout", 0.1);
}

// 1 where a is b, else 0.
Tensor equal_to(const Tensor& a, double b) { return compare(Binary::eq, a, full({}, b, a.dtype())); }

class DecoderModel : public Model {
 public:
  DecoderModel(ModelConfig& c, DecoderArchitecture architecture, std::string problem_type, i32 padding,
               const std::string& saved_as)
      : decoder_(std::move(architecture)) {
    const DecoderArchitecture& s = decoder_.architecture();
    family_ = s.family;
    vocab_size_ = s.vocab_size;
    hidden_size_ = s.embedding_width;
    max_length_ = s.max_length;
    n_layers_ = decoder_.n_layers();
    relative_positions_ = s.unlimited;
    if (s.mixture && s.mixture->balance && s.head_rows == 0 &&
        std::ranges::any_of(s.layers, &DecoderLayer::mixture))
      router_loss_ = {.per_token = s.mixture->per_token, .coefficient = *s.mixture->balance};
    // A recurrence has no scores to change, in whatever layer it is.
    attends_ = std::ranges::none_of(s.layers, [](const DecoderLayer& l) { return is_recurrent(l.mixer); });
    if (s.head_rows > 0) {
      task_ = s.scores_tokens ? ModelTask::token_classification : ModelTask::sequence_classification;
      num_labels_ = s.head_rows;
      problem_type_ = std::move(problem_type);
      pad_token_id_ = padding;
    }
    if (s.bidirectional && s.head_rows == 0) task_ = ModelTask::feature_extraction;
    SpecBuilder b(params_);
    decoder_.declare(b);
    config_json_ = c.dump();
    if (saved_as.empty()) return;
    nlohmann::ordered_json json = config_json_.tree().json;
    json["architectures"] = {saved_as};
    config_json_ = config_json_.with(ConfigTree{json});
  }

  // Keys and values, or the state of a recurrence.
  ModelCache make_cache(const CacheOptions& o) const override {
    ModelCache::Layers layers;
    for (const DecoderLayer& l : decoder_.architecture().layers) {
      if (attends(l.mixer))
        layers.push_back(std::make_unique<ColumnCache>(o, l.window));
      else
        layers.push_back(std::make_unique<StateCache>());
    }
    // The states of mixers that run next to attention follow.
    const auto& all = decoder_.architecture().layers;
    if (std::ranges::any_of(all, [](const DecoderLayer& l) { return l.mixer == Mixer::attention_and_mamba; }))
      for (std::size_t i = 0; i < all.size(); ++i) layers.push_back(std::make_unique<StateCache>());
    return {std::move(layers), {}, o.capacity};
  }
  Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const override {
    return decoder_.apply(p, in, o);
  }
  // Without score, the hidden states. Else the logits of each token, or [B, labels] of each row's last token
  // that is neither masked nor the padding token of the config, as in transformers.
  Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const override {
    const Tensor& ids = in.input_ids;
    const DecoderArchitecture& s = decoder_.architecture();
    const i64 first = s.position_offset;
    ApplyOptions own = o;
    own.head = o.head && s.head_rows > 0;
    if (s.bidirectional) own.causal = o.causal.value_or(false);
    const Tensor y = decoder_.apply(
        p, {ids, in.positions.defined() ? in.positions : row_positions(ids, first), in.key_mask}, own);
    if (!own.head || s.scores_tokens) return y;  // [B, T, C or labels]
    const Scope scope("last token");
    const Tensor logits = to_sum_type(y);  // [B, T, labels]
    Tensor tokens = to_float(in.key_mask.defined() ? in.key_mask : full_ids_like(ids, 1), logits.dtype());
    if (pad_token_id_ >= 0)
      tokens = tokens * (1.0 - equal_to(to_float(ids, logits.dtype()), static_cast<double>(pad_token_id_)));
    const Tensor last = tokens * equal_to(cumsum(tokens, 1, true), 1);
    return sum(logits * reshape(last, {ids.size(0), ids.size(1), 1}), {1});
  }
  i64 window(i64 layer) const override { return decoder_.architecture().layers[layer].window; }
  std::string canonical_name(const std::string& stored) const override {
    return decoder_.canonical_name(stored);
  }
  std::vector<i32> positions(std::span<const i32> mask, bool generating) const override {
    const DecoderArchitecture& s = decoder_.architecture();
    std::vector<i32> out =
        s.masked_positions ? decoder_.counted_positions(mask) : Model::positions(mask, generating);
    for (i32& position : out) position += static_cast<i32>(s.position_offset);
    return out;
  }

 private:
  Decoder decoder_;
};

}  // namespace

std::unique_ptr<Model> make_decoder_model(ModelConfig& c, ReadDecoder read, const std::string& saved_as) {
  DecoderArchitecture architecture = read(c);
  std::string problem_type;
  i32 padding = -1;
  if (has_class(c, "ForTokenClassification")) {
    read_token_scores(c, architecture);
  } else if (has_class(c, "ForSequenceClassification")) {
    read_score(c, architecture);
    problem_type = c.text_or("problem_type", "");
    padding = static_cast<i32>(c.integer_or("pad_token_id", -1, -1));
  }
  if (!c.boolean_or("is_causal", true)) {
    architecture.bidirectional = true;
    for (const DecoderLayer& l : architecture.layers)
      if (l.window > 0 || is_recurrent(l.mixer))
        c.fail("is_causal", "false: not supported with sliding windows or recurrent layers");
  }
  // As transformers saves a model without head.
  if (architecture.bidirectional && architecture.head_rows == 0) architecture.names.prefix = "";
  c.finish();
  return std::make_unique<DecoderModel>(c, std::move(architecture), std::move(problem_type), padding,
                                        saved_as);
}

}  // namespace redco
