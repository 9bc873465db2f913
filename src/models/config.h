// Reading a Hugging Face config.json: every key is used, refused, or listed in the log as without an effect.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "base/types.h"

namespace redco {

// Where messages about a config point to.
struct ConfigPlaces {
  Origins origins;   // places of the overrides, as keys "model.n_layer"
  std::string arch;  // "model.arch=gpt2" if the job describes the whole architecture; else ""
};

struct ConfigTree;  // the parsed JSON (config_tree.h)

// A config.json, parsed once where its folder is opened. It is passed on, and copies share the JSON.
class ConfigJson {
 public:
  ConfigJson();  // an object without keys
  // An object that redco makes. `source`: name for messages ("preset gpt2").
  ConfigJson(const ConfigTree& object, std::string source);
  // ContentsError that names the source: the text is no JSON object, larger than 16 MiB, or nested deeper
  // than 64 levels. Python's NaN and Infinity are read as transformers writes them (hf_keys.h).
  static ConfigJson parse(const std::string& text, std::string source);
  static ConfigJson of_file(const std::string& path);
  // Number of texts parsed in this process; for tests.
  static i64 parses();

  const ConfigTree& tree() const { return *tree_; }
  const std::string& source() const { return source_; }
  ConfigJson with(const ConfigTree& object) const { return {object, source_}; }
  std::string text() const;  // for saving

 private:
  std::shared_ptr<const ConfigTree> tree_;
  std::string source_;
};

// A config.json with the job's overrides. A family reads only the keys that it implements, and refuses single
// values with expect(). finish() classifies every other key that is not null by transformers' configuration
// classes (hf_keys.h):
//   no such attribute for this model_type    can't change a result: one log line lists these keys
//   an attribute that no code reads          likewise, without a message
//   the attribute's default                  what redco computes
//   any other value                          refused: an error
// Keys of model types that transformers doesn't have, and overrides without an attribute, are errors. Another
// name of an attribute (hidden_size for GPT-2's n_embd) counts as the attribute. A getter notes a missing or
// wrong value and returns a valid one, so that finish() or fail() reports all problems together. The error is
// a UsageError if keys of the job are wrong or missing, else a ContentsError that names file and key.
class ModelConfig {
 public:
  // overrides: key -> JSON text; overrides of a part of the model (an object with a model_type) are merged
  // key by key. ignore: keys that may stay unread.
  explicit ModelConfig(const ConfigJson& config, const std::map<std::string, std::string>& overrides = {},
                       const std::vector<std::string>& ignore = {}, ConfigPlaces places = {});
  // The same of a text that is parsed for this.
  ModelConfig(const std::string& json_text, std::string source,
              const std::map<std::string, std::string>& overrides = {},
              const std::vector<std::string>& ignore = {}, ConfigPlaces places = {})
      : ModelConfig(ConfigJson::parse(json_text, std::move(source)), overrides, ignore, std::move(places)) {}
  ~ModelConfig();
  ModelConfig(ModelConfig&&) noexcept;

  const std::string& source() const { return source_; }
  bool has(const std::string& key) const;         // present and not null
  bool mentions(const std::string& key) const;    // present, maybe null
  bool overridden(const std::string& key) const;  // by the job
  bool require(const std::string& key);           // has(); notes that the key is missing
  // REQUIRED values; `least` is the smallest legal one.
  i64 integer(const std::string& key, i64 least = 1);
  i64 integer_or(const std::string& key, i64 fallback, i64 least = 1);  // also where the value is null
  double number_or(const std::string& key, double fallback);
  bool boolean_or(const std::string& key, bool fallback);
  std::string text_or(const std::string& key, const std::string& fallback);
  std::optional<i64> maybe_integer(const std::string& key);
  // A REQUIRED value under the first of these names, or under the others that transformers accepts. If
  // several are given, they must be equal.
  i64 integer_as(const std::vector<std::string>& names, i64 least = 1);
  i64 integer_as_or(const std::vector<std::string>& names, i64 fallback, i64 least = 1);
  // The number of classes: num_labels, or the size of id2label; 2 if the config has neither.
  i64 labels();
  // The config of a part of the model, an object in this one, which must be of this model_type.
  ModelConfig part(const std::string& key, const std::string& model_type);
  // The same where transformers has one class for the part: a part without a model_type is one, and an absent
  // part has that class's defaults. In folders of older versions KEY_dict takes its place.
  ModelConfig part_or_defaults(const std::string& key, const std::string& model_type);
  // A token's id, less than vocab_size; -1 if the value is null, `fallback` if the key is absent.
  i32 token_or(const std::string& key, i32 fallback, i64 vocab_size);
  double positive_or(const std::string& key, double fallback);  // > 0: a norm's epsilon
  double rate_or(const std::string& key, double fallback);      // in [0, 1): a dropout rate
  // pad_token_id, which torch.nn.Embedding gets as padding_idx: the row without a gradient. -1: none.
  i64 padding_row(i64 vocab_size);
  // An activation's name (nn/layers.h).
  std::string activation_or(const std::string& key, const std::string& fallback);
  // JSON text of a value ("null" if absent), for objects such as rope_scaling. Counts as read.
  std::string json(const std::string& key);
  // A key whose only supported values are these JSON texts.
  void expect(const std::string& key, const std::vector<std::string>& json_values);
  // Keys that do not change the computation.
  void inert(const std::vector<std::string>& keys);
  // Throws if a value was missing or wrong, or if keys are refused. Keys of every config (architectures,
  // dtype, ids of special tokens, generation defaults) are allowed.
  void finish();

  // Throws the problems noted before, or else this one: with missing values, a check of others may fail only
  // because of them.
  [[noreturn]] void fail(const std::string& key, const std::string& why) const;
  // The whole config with overrides, for saving.
  ConfigJson dump() const;

 private:
  ModelConfig part_of(const std::string& key, const std::string& from, const std::string& model_type,
                      bool typed);
  struct State;
  void note(const std::string& key, const std::string& why) const;
  void note_unknown(const std::string& key, const std::vector<std::string>& known) const;
  [[noreturn]] void report() const;
  std::unique_ptr<State> state_;
  std::string source_;
};

}  // namespace redco
