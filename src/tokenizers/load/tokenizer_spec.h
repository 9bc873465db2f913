// What a tokenizer's files say, before anything is built from it: the vocabulary and merges in flat arrays,
// the rest as JSON.
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
  std::string source;                    // the file's path, in front of errors
  std::unique_ptr<nlohmann::json> rest;  // the tokenizer.json without model.vocab and model.merges
  std::optional<Vocab> vocab;            // finished
  std::vector<double> scores;            // Unigram only: of each piece, by id
  Merges merges;
  bool has_merges = false;                   // whether there was a list of them at all
  std::map<std::string, std::string> roles;  // special tokens (eos_token, ...) where no file names them

  TokenizerSpec();
  TokenizerSpec(TokenizerSpec&&) noexcept;
  TokenizerSpec& operator=(TokenizerSpec&&) noexcept;
  ~TokenizerSpec();

  // Hash of everything that decides ids: vocabulary, merges and pipeline, not the file's layout.
  // REQUIRES a finished vocabulary. 32 hex digits.
  std::string fingerprint() const;
};

// Parses the text of a tokenizer.json. ContentsError for JSON that doesn't parse, nests deeper than 64,
// repeats a key, or has more than a million values beside vocabulary and merges; for a vocabulary or merges
// of another form.
TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& source);

// Parses a vocab.json, {token: id}, in the same way.
Vocab parse_vocab_json(std::string_view text, const std::string& source);

// Parses small JSON files (tokenizer_config.json) under the same bounds.
nlohmann::json parse_small_json(std::string_view text, const std::string& source);

// What GPT-2's files stand for. vocab_json: {token: id}; merges_txt: "left right" a line, lowest rank first;
// added: added_tokens.json ({token: id}) or an empty object; config: tokenizer_config.json or an empty
// object. config.tokenizer_class decides the pipeline: GPT-2's (the default; add_bos_token: true puts the bos
// token in front, as OPT has it), RoBERTa's and BART's, or Qwen2's. Special tokens become added tokens.
TokenizerSpec read_legacy_bpe(std::string_view vocab_json, std::string_view merges_txt,
                              const nlohmann::json& added, const nlohmann::json& config,
                              const std::string& folder);

// What transformers takes a folder with a sentencepiece model for: config.tokenizer_class decides, or else
// model_type (of config.json, "" for none). LlamaTokenizer, T5Tokenizer, or neither: the pieces without any
// white space added.
TokenizerSpec read_sp_folder(const SpModel& model, const nlohmann::json& config,
                             const std::string& model_type, const std::string& folder);

// BERT's vocab.txt, a token a line. config: tokenizer_config.json or an empty object, of which do_lower_case,
// strip_accents, tokenize_chinese_chars and the special tokens count.
TokenizerSpec read_vocab_txt(std::string_view text, const nlohmann::json& config, const std::string& source);

// The text of the tokenizer.json that `bytes` stands for: 256 bytes in order, then <|endoftext|>.
std::string bytes_tokenizer_json();
std::string bytes_tokenizer_config_json();

}  // namespace redco
