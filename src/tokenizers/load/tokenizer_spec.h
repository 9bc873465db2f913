// The parsed files of a tokenizer: the vocabulary and merges in flat arrays, the rest as JSON.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/models/bpe.h"
#include "tokenizers/models/vocab.h"
#include "tokenizers/sentencepiece/sp_model.h"

namespace redco {

struct TokenizerSpec {
  std::string source;                    // the file's path, for errors
  std::unique_ptr<nlohmann::json> rest;  // the tokenizer.json without model.vocab and model.merges
  std::optional<Vocab> vocab;            // finished
  std::vector<double> scores;            // Unigram only: log probability of each piece, by id
  Merges merges;
  bool has_merges = false;                   // whether the file has a list of merges
  std::map<std::string, std::string> roles;  // special tokens (eos_token, ...) that no file names

  TokenizerSpec();
  TokenizerSpec(TokenizerSpec&&) noexcept;
  TokenizerSpec& operator=(TokenizerSpec&&) noexcept;
  ~TokenizerSpec();

  // A hash of everything that decides ids: vocabulary, merges and pipeline, but not the file's layout. 32 hex
  // digits. REQUIRES a finished vocabulary.
  std::string fingerprint() const;
};

// Parses the text of a tokenizer.json. ContentsError for invalid JSON, nesting deeper than 64, a repeated
// key, more than a million values in addition to vocabulary and merges, and for a vocabulary or merges of
// another form.
TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& source);

// Parses a vocab.json, {token: id}, with the same limits.
Vocab parse_vocab_json(std::string_view text, const std::string& source);

// Parses small JSON files (tokenizer_config.json) with the same limits.
nlohmann::json parse_small_json(std::string_view text, const std::string& source);

// The tokenizer of GPT-2's files. vocab_json: {token: id}. merges_txt: "left right" per line, lowest rank
// first. added: added_tokens.json ({token: id}) or an empty object. config: tokenizer_config.json or an empty
// object. config.tokenizer_class, else `of_type`, the class of the model_type ("" if there is none), decides
// the pipeline: GPT-2's (the default; add_bos_token: true adds the bos token in front, as for OPT), RoBERTa's
// and BART's, Qwen2's, CLIP's or Whisper's. Special tokens become added tokens.
TokenizerSpec read_legacy_bpe(std::string_view vocab_json, std::string_view merges_txt,
                              const nlohmann::json& added, const nlohmann::json& config,
                              const std::string& of_type, const std::string& folder);

// Whether `text`, a tokenizer.model, is a file of tiktoken: lines of a token in base64 and its rank.
bool is_tiktoken(std::string_view text);

// The tokenizer of such a file, with the pattern of LLaMA 3, and the tokens of config.added_tokens_decoder.
TokenizerSpec read_tiktoken(std::string_view text, const nlohmann::json& config, const std::string& source);

// The tokenizer of Mistral's tekken.json.
TokenizerSpec read_tekken(std::string_view text, const std::string& source);

// The tokenizer of a folder with a sentencepiece model, as in transformers. config.tokenizer_class decides
// the pipeline, or else model_type (of config.json; "" if there is none): LlamaTokenizer, T5Tokenizer, or
// neither, which adds no white space.
TokenizerSpec read_sp_folder(const SpModel& model, const nlohmann::json& config,
                             const std::string& model_type, const std::string& folder);

// The tokenizer of BERT's vocab.txt, one token per line. config: tokenizer_config.json or an empty object;
// do_lower_case, strip_accents, tokenize_chinese_chars and the special tokens are read.
TokenizerSpec read_vocab_txt(std::string_view text, const nlohmann::json& config, const std::string& source);

// The tokenizer.json of the tokenizer `bytes`: 256 bytes in order, then <|endoftext|>.
std::string bytes_tokenizer_json();
std::string bytes_tokenizer_config_json();

}  // namespace redco
