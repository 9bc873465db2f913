// Model: a family's config, parameter specs and forward pass. Written for one device; sharding is data beside
// it.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"
#include "nn/layers.h"
#include "nn/param_tree.h"

namespace redco {

// Inputs of a decoder. Ids, positions and masks are i32.
struct DecoderInputs {
  Tensor input_ids;  // [B, T]
  Tensor positions;  // [B, T]; see Model::positions
  Tensor key_mask;   // [B, keys]: 1 = a token, 0 = padding; undefined: no padding. With a cache: over all it
                     // holds.
  // Encoder-decoder models: what encode() gave, [B, S, C], and its input's mask, [B, S] (undefined: no
  // padding). A cache keeps what attention needs of the memory (KvCache::Layer::cross_k, cross_v): made at
  // the cache's first apply, where the memory must be given, and reused afterwards, where it may be left out.
  // The mask is needed at every apply.
  Tensor memory{}, memory_mask{};
};

// Inputs of an encoder.
struct EncoderInputs {
  Tensor input_ids{};       // [B, S] i32
  Tensor key_mask{};        // [B, S] i32: 1 = a token, 0 = padding; undefined: no padding
  Tensor token_type_ids{};  // [B, S] i32; undefined: all 0
  Tensor pixel_values{};    // [B, channels, height, width]; images instead of ids
  Tensor features{};        // [B, F]; numbers instead of ids
};

// What a model computes; names as in verify's fixtures and model cards.
enum class ModelTask : std::uint8_t {
  causal_lm,                // apply
  seq2seq_lm,               // encode, then apply
  image_captioning,         // encode, then apply
  masked_lm,                // apply_encoder
  sequence_classification,  // apply_encoder
  image_classification,     // apply_encoder
  vector_regression,        // apply_encoder
};
const char* name_of(ModelTask task);  // causal-lm, seq2seq-lm, ...

// The images that a model reads; 0: it reads none.
struct ImageShape {
  i64 channels = 0, height = 0, width = 0;
};

class Model {
 public:
  static constexpr i64 kNoLimit = i64{1} << 40;

  virtual ~Model() = default;
  const std::string& family() const { return family_; }
  ModelTask task() const { return task_; }
  bool is_encoder_decoder() const {
    return task_ == ModelTask::seq2seq_lm || task_ == ModelTask::image_captioning;
  }
  // Classifications and regressions: how many numbers the model says of an example, and what they are:
  // problem_type of the config ("regression", "single_label_classification", ...), "" where it is silent.
  i64 num_labels() const { return num_labels_; }
  const std::string& problem_type() const { return problem_type_; }
  const ImageShape& image_shape() const { return image_shape_; }
  // Models of vectors: how many features they read; else 0.
  i64 n_features() const { return n_features_; }
  const ModelParams& params() const { return params_; }
  // The same model with adapters beside its parameters (nn/lora.h).
  void set_params(ModelParams params) { params_ = std::move(params); }
  i64 vocab_size() const { return vocab_size_; }
  // Positions the model has, of the decoder where there are two stacks. Relative positions have no end: what
  // the model was trained for, a default and no limit.
  i64 max_length() const { return max_length_; }
  i64 length_limit() const { return relative_positions_ ? kNoLimit : max_length_; }  // longest sequence
  i64 n_layers() const { return n_layers_; }  // of the decoder where there are two stacks
  // Encoder-decoder models: the token that begins every output, -1 where the config has none; the id that
  // stands for an ignored label in the decoder's input.
  i32 decoder_start_token_id() const { return decoder_start_token_id_; }
  i32 pad_token_id() const { return pad_token_id_; }
  // Encoder-decoder models in training: labels moved one to the right, the start token first, -100 as padding
  // (transformers' shift_tokens_right). Throws UsageError where the config lacks either id.
  std::vector<i32> decoder_input_ids(std::span<const i32> labels) const;
  // config.json as it is to be saved.
  const std::string& config_json() const { return config_json_; }

  // [B, T, V] logits of a decoder.
  virtual Tensor apply(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const;
  // [B, S, C]: the memory of an encoder-decoder model. Fills o.hidden_states; uses no cache.
  virtual Tensor encode(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const;
  // Logits of an encoder alone: [B, S, V] of masked_lm, [B, labels] of a classification or regression.
  virtual Tensor apply_encoder(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const;

  // Positions of one row from its attention mask, as transformers gives them. Forward: 0, 1, 2, ... whatever
  // the mask says; generating (rows padded on the left): the number of tokens before. Families may differ
  // (OPT counts the mask always, and gives rows of its table).
  virtual std::vector<i32> positions(std::span<const i32> mask, bool generating) const;

  // The file's tensor that a name in a checkpoint stands for, in the name that the specs use: legacy and
  // prefixed spellings. Empty: a buffer that isn't a parameter and is skipped (a stored causal mask).
  virtual std::string canonical_name(const std::string& stored) const { return stored; }

  // Config keys that make this model with a head apart from the embedding it is tied to: for folders that
  // hold the two with different values, whatever their config says (transformers 5 writes T5 1.1 so).
  virtual std::map<std::string, std::string> untied_config() const {
    return {{"tie_word_embeddings", "false"}};
  }

 protected:
  std::string family_, config_json_;
  ModelParams params_;
  i64 vocab_size_ = 0, max_length_ = 0, n_layers_ = 0;
  ModelTask task_ = ModelTask::causal_lm;
  bool relative_positions_ = false;
  i32 decoder_start_token_id_ = -1, pad_token_id_ = -1;
  i64 num_labels_ = 0, n_features_ = 0;
  std::string problem_type_;
  ImageShape image_shape_;
};

// The family is config's model_type. Throws ContentsError (UsageError for overrides) for an unknown family,
// and for every key or value that the family doesn't support.
std::unique_ptr<Model> make_model(ModelConfig config);
std::vector<std::string> model_families();
// Whether a family reads or writes text, and so needs a vocabulary.
bool family_has_vocabulary(const std::string& model_type);
// config.json of a preset name ("gpt-j-6b"); throws UsageError with the nearest names.
std::string preset_config(const std::string& name);
std::vector<std::string> preset_names();

}  // namespace redco
