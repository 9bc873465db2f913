// Whisper's special tokens (Radford et al. 2022): the beginning of each output names the language, the task
// and whether it has times; tokens of time follow all others. Found by their texts in the tokenizer.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generate/generation_settings.h"
#include "pipeline/task_settings.h"
#include "tokenizers/tokenizer.h"

namespace redco {

class SpeechTokens {
 public:
  // generation_config: the text of that file ("": none), which says if a model is for English alone.
  // vocab_size: of the model.
  SpeechTokens(const Tokenizer& tokenizer, const std::string& generation_config, i64 vocab_size);

  // Whether the tokenizer has such tokens. Without them an output begins with the model's first token alone.
  bool any() const { return any_; }
  // The tokens of languages: {"en", id}, ...; empty: the model has one language.
  const std::vector<std::pair<std::string, i32>>& languages() const { return languages_; }
  bool has_times() const { return times_.has_value(); }
  // For generation with times. REQUIRES: has_times().
  const TimestampTokens& times() const { return *times_; }
  // Seconds from the window's beginning; nullopt: not a token of time.
  std::optional<double> seconds(i32 id) const;

  // The token of a language. UsageError with the known ones.
  i32 language(const std::string& name) const;
  // The tokens between the first token and the text. language: its token, if the model has languages.
  // UsageError: the tokenizer lacks the task or times.
  std::vector<i32> prefix(std::optional<i32> language, const std::string& task, bool times) const;

 private:
  i32 required(const std::string& token) const;
  const Tokenizer& tokenizer_;
  bool any_ = false;
  std::vector<std::pair<std::string, i32>> languages_;
  std::optional<TimestampTokens> times_;
};

}  // namespace redco
