// The pipeline of a tokenizer.json: added tokens, normalizer, normalized added tokens, pre-tokenizer, model
// and post-processor; and the decoder.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tokenizers/added_tokens.h"
#include "tokenizers/decoders/decoders.h"
#include "tokenizers/load/tokenizer_spec.h"
#include "tokenizers/models/model.h"
#include "tokenizers/normalizers/normalizers.h"
#include "tokenizers/post_processor.h"
#include "tokenizers/pre_tokenizers/pre_tokenizers.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// The stages of a tokenizer that no tokenizer.json describes. Null stages are left out.
struct TokenizerParts {
  std::unique_ptr<Normalizer> normalizer;
  std::unique_ptr<TokenModel> model;
  std::unique_ptr<Decoder> decoder;
  nlohmann::json added, post;  // as in a tokenizer.json
  // The end token that encode() doesn't add to a text that already ends with it; -1: none.
  i32 end_once = -1;
};

class HfTokenizer : public Tokenizer {
 public:
  // ContentsError for anything in `spec` that redco doesn't support. files() returns the tokenizer's files.
  HfTokenizer(TokenizerSpec spec, std::string name, std::function<std::vector<TokenizerFile>()> files);

  HfTokenizer(TokenizerParts parts, std::string fingerprint, std::string name,
              std::function<std::vector<TokenizerFile>()> files);

  // Reads the special tokens (bos_token, ...) from tokenizer_config.json or special_tokens_map.json.
  // ContentsError for a token that the tokenizer doesn't have.
  void read_special(const nlohmann::json& config, const std::string& source);
  // Sets special ids that the tokenizer lacks, if it has tokens with these ids.
  void add_special(const SpecialIds& ids);
  // The tokenizer of target texts, which has the same ids.
  void set_target(std::unique_ptr<HfTokenizer> target);

  std::vector<i32> encode(std::string_view text, bool add_special) const override;
  Encoding encode_truncated(std::string_view text, i64 max_length, bool add_special) const override;
  Encoding encode_pair(std::string_view text, std::string_view pair, std::optional<i64> max_length,
                       bool add_special) const override;
  const Tokenizer& target() const override { return target_ ? *target_ : *this; }
  Tokens tokenize(std::string_view text, bool add_special) const override;
  std::vector<std::string> tokens(std::span<const i32> ids) const override;
  std::string decode(std::span<const i32> ids, bool skip_special) const override;
  i32 vocab_size() const override;
  std::optional<i32> token_to_id(std::string_view token) const override;
  std::optional<std::string> id_to_token(i32 id) const override;
  bool is_special(i32 id) const override { return added_.is_special(id) || model_->is_control(id); }
  std::optional<std::size_t> last_cut(std::string_view text) const override;
  bool takes_any_bytes() const override { return any_bytes_; }
  std::string fingerprint() const override { return fingerprint_; }
  const std::string& name() const override { return name_; }
  std::vector<TokenizerFile> files() const override { return files_(); }

 private:
  // If `tokens` is not null, it gets the text of each id.
  void append_plain(std::string_view text, std::vector<i32>& out,
                    std::vector<std::string>* tokens = nullptr) const;
  void append_segment(std::string_view text, bool first, ModelScratch& scratch, std::vector<i32>& out,
                      std::vector<std::string>* tokens) const;
  // Cuts ids down to n, at the end or, with truncation_side: left, at the beginning.
  void shorten(std::vector<i32>& ids, std::size_t n) const;
  std::unique_ptr<ModelScratch> borrow() const;
  void give_back(std::unique_ptr<ModelScratch> scratch) const;

  std::string name_, fingerprint_;
  std::function<std::vector<TokenizerFile>()> files_;
  std::unique_ptr<Normalizer> normalizer_;
  std::unique_ptr<PreTokenizer> pre_tokenizer_;
  std::unique_ptr<TokenModel> model_;
  std::unique_ptr<Decoder> decoder_;
  std::unique_ptr<PostProcessor> post_processor_;
  AddedTokens added_;
  std::unique_ptr<HfTokenizer> target_;  // nullptr: the tokenizer itself
  bool truncate_left_ = false;
  bool any_bytes_ = false, looks_at_front_ = false;
  unsigned cuts_ = kNoCuts;  // CutKinds of the pipeline as a whole

  mutable std::mutex mutex_;  // guards the list of idle scratches
  mutable std::vector<std::unique_ptr<ModelScratch>> scratches_;
};

}  // namespace redco
