// Model: a family's config, parameter specs and forward pass. It is written for one device; the layouts of
// the parameters hold the sharding.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"
#include "nn/cache.h"
#include "nn/layers.h"
#include "nn/param_tree.h"

namespace redco {

// Inputs of a decoder. Ids, positions and masks are i32.
struct DecoderInputs {
  Tensor input_ids;  // [B, T]
  Tensor positions;  // [B, T]; see Model::positions
  Tensor key_mask;   // [B, keys]: 1 = a token, 0 = padding; undefined: no padding. With a cache: all its
                     // columns.
  // Encoder-decoder models: encode()'s output [B, S, C], and the mask of its input [B, S] (undefined: no
  // padding). The first apply with a cache needs the memory, and keeps what cross-attention reads of it;
  // later ones may omit it. Every apply needs the mask.
  Tensor memory{}, memory_mask{};
};

// Inputs of an encoder.
struct EncoderInputs {
  Tensor input_ids{};       // [B, S] i32
  Tensor key_mask{};        // [B, S] i32: 1 = a token, 0 = padding; undefined: no padding
  Tensor token_type_ids{};  // [B, S] i32; undefined: all 0
  Tensor pixel_values{};    // [B, channels, height, width]; images instead of ids
  // [B, F]; numbers instead of ids. Text-to-image: the time of each image, [B, 1]. Speech: log-mel energies
  // of the recordings, [B, bands, frames].
  Tensor features{};
  Tensor memory{};  // text-to-image: encode()'s output for input_ids and key_mask
  // [B, S] i32: rows of the table of positions, where the family has one; undefined: those of the family.
  Tensor positions{};
};

// The task of a model; its names are those of verify's fixtures and model cards.
enum class ModelTask : std::uint8_t {
  causal_lm,                // apply
  seq2seq_lm,               // encode, then apply
  image_captioning,         // encode, then apply
  speech_to_text,           // encode, then apply
  masked_lm,                // apply_encoder
  sequence_classification,  // apply_encoder
  token_classification,     // apply_encoder: logits of each token
  question_answering,       // apply_encoder: logits of each token as the start and as the end of the answer
  multiple_choice,          // apply_encoder: a logit for each question with one of its choices
  feature_extraction,       // apply_encoder: the last hidden state
  image_classification,     // apply_encoder
  vector_regression,        // apply_encoder
  text_to_image,            // encode the caption, then apply_encoder with a noisy image
  image_text_contrastive,   // apply_encoder of an image or of a text: embeddings
};
const char* name_of(ModelTask task);  // causal-lm, seq2seq-lm, ...

// The size of a model's input images; 0: no images.
struct ImageShape {
  i64 channels = 0, height = 0, width = 0;
};

// The size of a model's input recordings, as log-mel energies; 0: no recordings.
struct AudioShape {
  i64 bands = 0, frames = 0;
};

// The loss term of a mixture's load-balancing loss.
inline constexpr const char* kRouterLossTerm = "router_aux_loss";
// What the load-balancing loss of a mixture of experts depends on (models/router_loss.h).
struct RouterLoss {
  i64 per_token = 1;       // experts that a token chooses
  double coefficient = 0;  // of the loss in the sum of losses
};

class Model {
 public:
  static constexpr i64 kNoLimit = i64{1} << 40;

  virtual ~Model() = default;
  const std::string& family() const { return family_; }
  ModelTask task() const { return task_; }
  bool is_encoder_decoder() const {
    return task_ == ModelTask::seq2seq_lm || task_ == ModelTask::image_captioning ||
           task_ == ModelTask::speech_to_text;
  }
  bool generates_text() const { return task_ == ModelTask::causal_lm || is_encoder_decoder(); }
  // Classification and regression: the number of outputs per example, and the config's problem_type
  // ("regression", "single_label_classification", ...; "" if absent). Of image_text_contrastive: the width of
  // an embedding.
  i64 num_labels() const { return num_labels_; }
  const std::string& problem_type() const { return problem_type_; }
  const ImageShape& image_shape() const { return image_shape_; }
  const AudioShape& audio_shape() const { return audio_shape_; }
  // Input features of a model on feature vectors; else 0.
  i64 n_features() const { return n_features_; }
  // Whether every text is padded to max_length() tokens and attention includes the padding, as in the
  // training of SigLIP; then key_mask is not set.
  bool pads_texts() const { return pads_texts_; }
  const ModelParams& params() const { return params_; }
  // The width of last_hidden_state(); 0: the family does not give it.
  i64 hidden_size() const { return hidden_size_; }
  // Replaces the parameters, to add adapters (nn/lora.h).
  void set_params(ModelParams params) { params_ = std::move(params); }
  i64 vocab_size() const { return vocab_size_; }
  // The model's number of positions (the decoder's, if there are two stacks). For relative positions it is
  // the length of training, a default and not a limit.
  i64 max_length() const { return max_length_; }
  i64 length_limit() const { return relative_positions_ ? kNoLimit : max_length_; }  // longest sequence
  i64 n_layers() const { return n_layers_; }  // the decoder's, if there are two stacks
  // Encoder-decoder models: the first token of every output, -1 if the config has none; the id of an ignored
  // label in the decoder's input.
  i32 decoder_start_token_id() const { return decoder_start_token_id_; }
  i32 pad_token_id() const { return pad_token_id_; }
  // Encoder-decoder models in training: labels shifted one to the right, the start token first, -100 as
  // padding (transformers' shift_tokens_right). UsageError if the config lacks either id. mBART's rows begin
  // with their last label, the language.
  virtual std::vector<i32> decoder_input_ids(std::span<const i32> labels) const;
  // The load-balancing loss that training adds, as transformers' causal language model does with
  // output_router_logits: true; nullopt: none.
  const std::optional<RouterLoss>& router_loss() const { return router_loss_; }
  // config.json for saving, and its text.
  const ConfigJson& config() const { return config_json_; }
  std::string config_json() const { return config_json_.text(); }

  // [B, T, V] logits of a decoder. With a cache, the inputs are the tokens after those in the cache.
  Tensor apply(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const;
  // An empty cache of the decoder. Keys and values per layer, unless a family overrides it.
  virtual ModelCache make_cache(const CacheOptions& o) const;
  // [B, S, C]: the memory of an encoder-decoder model. Fills o.hidden_states; uses no cache.
  Tensor encode(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const;
  // Logits of an encoder alone: [B, S, V] of masked_lm, [B, S, labels] of token_classification and
  // question_answering (2 labels), [B, labels] of a classification or regression, [B, 1] of multiple_choice;
  // without head its last hidden state [B, S, C]. Image-text-contrastive: the embeddings [B, num_labels] of
  // in.pixel_values or of in.input_ids, not scaled to length 1.
  // Text-to-image: the velocity [B, channels, height, width] of in.pixel_values at the times in.features.
  Tensor apply_encoder(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const;

  // What the head reads: [B, T, hidden_size] after the last norm, as transformers' model without head returns
  // it. Of a decoder (also of an encoder-decoder model), or of an encoder alone. UsageError if the family
  // does not give it.
  Tensor last_hidden_state(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const;
  Tensor last_hidden_state(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const;

  // Positions of one row from its attention mask, equal to transformers'. In a forward pass: 0, 1, 2, ... for
  // any mask. In generation (rows padded on the left): the number of earlier tokens. Families may differ (OPT
  // always counts the mask, and returns rows of its table).
  virtual std::vector<i32> positions(std::span<const i32> mask, bool generating) const;

  // The spec's name of a tensor in a checkpoint: resolves old names and prefixes. Empty: a buffer to skip,
  // like a stored causal mask.
  virtual std::string canonical_name(const std::string& stored) const { return stored; }

  // Config keys that untie the head from the embedding, for folders that hold both with different values
  // although their config ties them (transformers 5 saves T5 1.1 that way).
  virtual std::map<std::string, std::string> untied_config() const {
    return {{"tie_word_embeddings", "false"}};
  }

 private:
  template <class F>
  Tensor pass(const ApplyOptions& o, const char* function, const F& f) const;

 protected:
  // apply(); each layer adds its entries to the cache.
  virtual Tensor decode(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const;
  // encode()
  virtual Tensor encode_memory(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const;
  // apply_encoder()
  virtual Tensor encode_outputs(const ParamTree& p, const EncoderInputs& in, const ApplyOptions& o) const;
  // The most tokens that a query of this layer attends to (sliding window); 0: all.
  virtual i64 window(i64 layer) const;

  std::string family_;
  ConfigJson config_json_;
  ModelParams params_;
  i64 vocab_size_ = 0, max_length_ = 0, n_layers_ = 0;
  ModelTask task_ = ModelTask::causal_lm;
  bool relative_positions_ = false, pads_texts_ = false;
  i32 decoder_start_token_id_ = -1, pad_token_id_ = -1;
  i64 num_labels_ = 0, n_features_ = 0;
  i64 hidden_size_ = 0;  // set it if decode() or encode_outputs() follow ApplyOptions::head
  std::string problem_type_;
  std::optional<RouterLoss> router_loss_;
  ImageShape image_shape_;
  AudioShape audio_shape_;
  bool attends_ =
      true;  // false: no layer calls attend(), so ApplyOptions::causal and attention_bias are errors
};

// The family is the config's model_type. ContentsError (UsageError for overrides) for an unknown family, and
// for each key or value that the family does not support.
std::unique_ptr<Model> make_model(ModelConfig config);
std::vector<std::string> model_families();
// Whether a family reads or writes text, so that it needs a vocabulary.
bool family_has_vocabulary(const std::string& model_type);
// What a config made from model.arch needs beyond the keys of the job and the tokenizer's bos, eos and pad.
struct ArchNeeds {
  // The row of the padding token is never trained, so no other token may be it.
  bool own_padding = false;
  // The first token of outputs: this one if the tokenizer has it, else the padding or the end token.
  enum class Start : std::uint8_t { none, padding, end } start = Start::none;
  const char* start_token = "";
  // Adds the configs of the model's parts.
  void (*add_parts)(ConfigTree& config) = nullptr;
};
const ArchNeeds& arch_needs(const std::string& model_type);
// transformers' class of the family as a causal language model ("GPT2LMHeadModel"); "": none.
std::string language_model_class(const std::string& model_type);
// config.json of a preset name ("gpt-j-6b"); throws UsageError with the nearest names.
std::string preset_config(const std::string& name);
std::vector<std::string> preset_names();

}  // namespace redco
