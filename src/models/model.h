// Model: a family's config, parameter specs and forward pass. Written for one device; sharding is data beside
// it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/config.h"
#include "nn/layers.h"
#include "nn/param_tree.h"

namespace redco {

// Inputs of a decoder-only model. All [B, T] i32.
struct DecoderInputs {
  Tensor input_ids;
  Tensor positions;  // see Model::positions
  Tensor key_mask;   // [B, keys]: 1 = a token, 0 = padding; undefined: no padding. With a cache: over all it
                     // holds.
};

class Model {
 public:
  virtual ~Model() = default;
  const std::string& family() const { return family_; }
  const ModelParams& params() const { return params_; }
  i64 vocab_size() const { return vocab_size_; }
  i64 max_length() const { return max_length_; }  // positions the model has
  i64 n_layers() const { return n_layers_; }
  // config.json as it is to be saved.
  const std::string& config_json() const { return config_json_; }

  // [B, T, V] logits.
  virtual Tensor apply(const ParamTree& p, const DecoderInputs& in, const ApplyOptions& o) const = 0;

  // Positions of one row from its attention mask, as transformers gives them. Forward: 0, 1, 2, ... whatever
  // the mask says; generating (rows padded on the left): the number of tokens before. Families may differ
  // (OPT counts the mask always, and gives rows of its table).
  virtual std::vector<i32> positions(std::span<const i32> mask, bool generating) const;

  // The file's tensor that a name in a checkpoint stands for, in the name that the specs use: legacy and
  // prefixed spellings. Empty: a buffer that isn't a parameter and is skipped (a stored causal mask).
  virtual std::string canonical_name(const std::string& stored) const { return stored; }

 protected:
  std::string family_, config_json_;
  ModelParams params_;
  i64 vocab_size_ = 0, max_length_ = 0, n_layers_ = 0;
};

// The family is config's model_type. Throws ContentsError (UsageError for overrides) for an unknown family,
// and for every key or value that the family doesn't support.
std::unique_ptr<Model> make_model(ModelConfig config);
std::vector<std::string> model_families();
// config.json of a preset name ("gpt-j-6b"); throws UsageError with the nearest names.
std::string preset_config(const std::string& name);
std::vector<std::string> preset_names();

// Each family, for the registry.
std::unique_ptr<Model> make_gpt2(ModelConfig& c);
std::unique_ptr<Model> make_gptj(ModelConfig& c);
std::unique_ptr<Model> make_opt(ModelConfig& c);
std::unique_ptr<Model> make_llama(ModelConfig& c);  // llama, mistral, qwen2

}  // namespace redco
