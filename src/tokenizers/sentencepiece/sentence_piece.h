// sentencepiece's own pipeline, id by id as its library runs it: the normalizer, Unigram and BPE over all of
// the text, and the way back. (What transformers makes of the same files is another pipeline: sp_files.cpp.)
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
  std::string space_;            // what a space becomes
  std::unique_ptr<Charsmap> map_;
  std::vector<std::string> symbols_;
  Trie symbol_trie_;  // user-defined symbols, which no rule touches
};

// What the two algorithms share: pieces, and unknown text, which becomes bytes or one unknown token a run.
class SpTokens : public TokenModel {
 public:
  SpTokens(const SpModel& model, Vocab all, Vocab normal, Vocab reserved);

  std::unique_ptr<ModelScratch> make_scratch() const override { return std::make_unique<ModelScratch>(); }
  void encode(std::string_view piece, ModelScratch&, std::vector<i32>& out) const override;
  void tokenize(std::string_view piece, ModelScratch&, std::vector<i32>& ids,
                std::vector<std::string>& tokens) const override;
  bool is_control(i32 id) const override;

  // The id of a piece by its text, reserved ones first; that of the unknown piece for other text.
  i32 id_of(std::string_view text) const;

 protected:
  struct Part {
    std::string_view text;
    i32 id;
  };
  // The parts that the algorithm cuts normalized text into; they cover it.
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

// The model's Unigram or BPE. ContentsError, with `where` in front, for more than the vocabulary can hold.
std::unique_ptr<SpTokens> make_sp_tokens(const SpModel& model, const std::string& where);

// tokens: those of make_sp_tokens(model), which must live as long as the decoder.
std::unique_ptr<Decoder> make_sp_decoder(const SpModel& model, const SpTokens& tokens);

}  // namespace redco
