// The unigram language model (Kudo 2018), as Hugging Face's Unigram runs it: of all ways to cut a piece into
// tokens, the one with the highest sum of log probabilities.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tokenizers/models/model.h"
#include "tokenizers/models/trie.h"

namespace redco {

// scores: of each token, by id. unk: the id of characters that no token covers, 10 below the lowest score;
// without it such a character is a ContentsError. Neighbouring unknown characters are one token, and where
// byte_fallback is set and the vocabulary has all of <0x00> ... that they need, one token a byte.
class Unigram : public TokenModel {
 public:
  Unigram(Vocab vocab, std::vector<double> scores, std::optional<i32> unk, bool byte_fallback);

  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<i32>& out) const override;

  // An unknown token's text is the piece's own.
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
  std::array<i32, 256> fallback_{};  // of <0x00> ... <0xFF>, -1 where missing
};

}  // namespace redco
