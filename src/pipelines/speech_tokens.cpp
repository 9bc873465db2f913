#include "pipelines/speech_tokens.h"

#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr double kTimeStep = 0.02;
constexpr const char *kFirst = "<|startoftranscript|>", *kWithoutTimes = "<|notimestamps|>";

}  // namespace

SpeechTokens::SpeechTokens(const Tokenizer& tokenizer, const std::string& generation_config, i64 vocab_size)
    : tokenizer_(tokenizer) {
  const auto first = tokenizer.token_to_id(kFirst);
  if (!first) return;
  any_ = true;
  const nlohmann::json config = nlohmann::json::parse(generation_config, nullptr, false);
  const auto given = [&](const char* key) { return config.is_object() && config.contains(key); };
  // The languages are between these two.
  const auto task = tokenizer.token_to_id("<|translate|>");
  if (!(given("is_multilingual") && config["is_multilingual"] == false))
    for (i32 id = *first + 1; task && id < *task; ++id)
      if (const auto token = tokenizer.id_to_token(id);
          token && token->starts_with("<|") && token->ends_with("|>"))
        languages_.emplace_back(token->substr(2, token->size() - 4), id);
  const auto none = tokenizer.token_to_id(kWithoutTimes);
  if (!none || *none + 1 >= vocab_size) return;
  times_ =
      TimestampTokens{.first = *none + 1, .none = *none, .end = tokenizer.special().eos.value_or(*none + 1)};
  if (given("max_initial_timestamp_index") && config["max_initial_timestamp_index"].is_number_unsigned())
    times_->most_first = static_cast<i32>(
        std::min<u64>(config["max_initial_timestamp_index"].get<u64>(), static_cast<u64>(vocab_size)));
}

std::optional<double> SpeechTokens::seconds(i32 id) const {
  if (!times_ || id < times_->first) return std::nullopt;
  return kTimeStep * static_cast<double>(id - times_->first);
}

i32 SpeechTokens::required(const std::string& token) const {
  if (const auto id = tokenizer_.token_to_id(token)) return *id;
  throw UsageError("[model] the tokenizer {} has no token {}, which transcription needs", tokenizer_.name(),
                   token);
}

i32 SpeechTokens::language(const std::string& name) const {
  std::vector<std::string> known;
  for (const auto& [language, id] : languages_) {
    if (language == name) return id;
    known.push_back(language);
  }
  if (known.empty())
    throw UsageError(
        "[job] transcription.language is {}, but the model has no languages to choose from. Remove the setting",
        excerpt(name));
  throw UsageError("[job] transcription.language is {}; the tokenizer's languages: {}", excerpt(name),
                   fmt::join(known, ", "));
}

std::vector<i32> SpeechTokens::prefix(std::optional<i32> language, const std::string& task,
                                      bool times) const {
  if (!any_) return {};
  std::vector<i32> out;
  if (language) out = {*language, required("<|" + task + "|>")};
  if (!times) out.push_back(required(kWithoutTimes));
  return out;
}

}  // namespace redco
