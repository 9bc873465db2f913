// The unigram language model (Kudo 2018) with the details of Hugging Face's Unigram: of all segmentations of
// a piece into tokens, the one with the highest sum of log probabilities.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tokenizers/models/model.h"
#include "tokenizers/models/trie.h"

namespace redco {

// scores: log probability of each token, by id. unk: the id of characters that no token covers; its score is
// 10 below the lowest. Without unk such a character is a ContentsError. Adjacent unknown characters become
// one unk token. With byte_fallback they become one token <0x..> per byte if the vocabulary has all of these.
class Unigram : public TokenModel {
 public:
  Unigram(Vocab vocab, std::vector<double> scores, std::optional<i32> unk, bool byte_fallback);

  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<i32>& out) const override;

  // The text of an unk token is its part of the piece.
  void tokenize(std::string_view piece, ModelScratch& scratch, std::vector<i32>& ids,
                std::vector<std::string>& tokens) const override;

 private:
  struct Scratch;
  template <class Emit>
  void best_path(std::string_view piece, Scratch& s, Emit&& emit) const;

  std::vector<double> scores_;
  i32 unk_;  // or -1
  bool byte_fallback_;
  double unk_score_;
  Trie trie_;
  std::array<i32, 256> fallback_{};  // ids of <0x00> ... <0xFF>; -1 if missing
};

}  // namespace redco
