// Reading a Hugging Face config.json: every key is used, inert, or an error.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

// A config.json with the job's overrides laid over it. Values are asked for by name; finish() then refuses
// every non-null key that nobody asked for. Errors are ContentsErrors that name file and key (UsageErrors for
// overrides).
class ModelConfig {
 public:
  // `source` is for messages ("path/config.json"). overrides: key -> JSON text; those of a part of the model
  // (an object with a model_type) are laid over it key by key. ignore: keys that may stay unused.
  ModelConfig(const std::string& json_text, std::string source,
              const std::map<std::string, std::string>& overrides = {},
              const std::vector<std::string>& ignore = {});
  ~ModelConfig();
  ModelConfig(ModelConfig&&) noexcept;

  const std::string& source() const { return source_; }
  bool has(const std::string& key) const;       // present and not null
  bool mentions(const std::string& key) const;  // present, maybe null
  // REQUIRED values; `least` is the smallest legal one.
  i64 integer(const std::string& key, i64 least = 1);
  i64 integer_or(const std::string& key, i64 fallback, i64 least = 1);  // also where the value is null
  double number_or(const std::string& key, double fallback);
  bool boolean_or(const std::string& key, bool fallback);
  std::string text_or(const std::string& key, const std::string& fallback);
  std::optional<i64> maybe_integer(const std::string& key);
  // A REQUIRED value under the first of these names, or the others transformers reads it under; where several
  // are given they agree.
  i64 integer_as(const std::vector<std::string>& names, i64 least = 1);
  i64 integer_as_or(const std::vector<std::string>& names, i64 fallback, i64 least = 1);
  // How many classes the config names: num_labels, or the size of id2label (2 where it has neither).
  i64 labels();
  // The config of a part of the model, an object in this one, which must be of this model_type.
  ModelConfig part(const std::string& key, const std::string& model_type);
  // A token's id, less than vocab_size; -1 where the value is null, `fallback` where the key is absent.
  i32 token_or(const std::string& key, i32 fallback, i64 vocab_size);
  double positive_or(const std::string& key, double fallback);  // > 0: a norm's epsilon
  double rate_or(const std::string& key, double fallback);      // in [0, 1): a dropout rate
  // pad_token_id where torch.nn.Embedding is given it as padding_idx: the row that gets no gradient. -1:
  // none.
  i64 padding_row(i64 vocab_size);
  // An activation's name (nn/layers.h).
  std::string activation_or(const std::string& key, const std::string& fallback);
  // JSON text of a value ("null" where absent): for objects such as rope_scaling. Counts as used.
  std::string json(const std::string& key);
  // A key whose only supported values are these JSON texts.
  void expect(const std::string& key, const std::vector<std::string>& json_values);
  // Keys that don't change what is computed.
  void inert(const std::vector<std::string>& keys);
  // Throws for keys left over. Keys every config has (architectures, dtype, ids of special tokens, generation
  // defaults) are known here.
  void finish();

  [[noreturn]] void fail(const std::string& key, const std::string& why) const;
  // The whole config, with overrides, as it is to be saved.
  std::string dump() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  std::string source_;
};

}  // namespace redco
