// The pipeline of the sentencepiece library, with the same ids: normalizer, Unigram or BPE over the whole
// text, and decoder. transformers uses another pipeline for the same files; sp_files.cpp has it.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tokenizers/decoders/decoders.h"
#include "tokenizers/models/model.h"
#include "tokenizers/models/trie.h"
#include "tokenizers/normalizers/charsmap.h"
#include "tokenizers/normalizers/normalizers.h"
#include "tokenizers/sentencepiece/sp_model.h"

namespace redco {

class SpNormalizer : public Normalizer {
 public:
  SpNormalizer(const SpModel& model, const std::string& where);
  std::string normalize(std::string_view text) const override;
  bool unchanged(std::string_view) const override { return false; }
  unsigned cuts() const override { return kNoCuts; }

 private:
  std::string_view prefix(std::string_view text, std::size_t& length) const;

  bool dummy_, extra_, suffix_;  // add_dummy_prefix, remove_extra_whitespaces, treat_whitespace_as_suffix
  std::string space_;            // replacement of a space
  std::unique_ptr<Charsmap> map_;
  std::vector<std::string> symbols_;
  Trie symbol_trie_;  // user-defined symbols, which are not normalized
};

// The common part of both algorithms: the pieces, and unknown text, of which each run becomes bytes or one
// unknown token.
class SpTokens : public TokenModel {
 public:
  SpTokens(const SpModel& model, Vocab all, Vocab normal, Vocab reserved);

  std::unique_ptr<ModelScratch> make_scratch() const override { return std::make_unique<ModelScratch>(); }
  void encode(std::string_view piece, ModelScratch&, std::vector<i32>& out) const override;
  void tokenize(std::string_view piece, ModelScratch&, std::vector<i32>& ids,
                std::vector<std::string>& tokens) const override;
  bool is_control(i32 id) const override;

  // The id of the piece with this text; reserved pieces have precedence. The id of the unknown piece for
  // other text.
  i32 id_of(std::string_view text) const;

 protected:
  struct Part {
    std::string_view text;
    i32 id;
  };
  // Splits normalized text into parts, which cover it.
  virtual std::vector<Part> cut(std::string_view text) const = 0;

  SpModel::Kind kind(i32 id) const { return kinds_[static_cast<std::size_t>(id)]; }
  float score(i32 id) const { return scores_[static_cast<std::size_t>(id)]; }

  Vocab normal_;  // normal, user-defined and unused pieces
  i32 unk_ = 0;

 private:
  template <class Emit>
  void emit_parts(std::string_view text, Emit&& emit) const;

  Vocab reserved_;
  std::vector<SpModel::Kind> kinds_;
  std::vector<float> scores_;
  bool byte_fallback_;
  std::array<i32, 256> bytes_{};
};

// Makes the model's Unigram or BPE. ContentsError, starting with `where`, for more pieces than a vocabulary
// can have.
std::unique_ptr<SpTokens> make_sp_tokens(const SpModel& model, const std::string& where);

// tokens: the result of make_sp_tokens(model); it must outlive the decoder.
std::unique_ptr<Decoder> make_sp_decoder(const SpModel& model, const SpTokens& tokens);

}  // namespace redco
