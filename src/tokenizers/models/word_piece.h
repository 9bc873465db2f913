// WordPiece and WordLevel as Hugging Face runs them.
#pragma once

#include <string>

#include "tokenizers/models/model.h"
#include "tokenizers/models/trie.h"

namespace redco {

// BERT's: the longest token that the word starts with, then the longest that continues it (written with
// `prefix` in the vocabulary), and so on. A word of more than max_chars characters, or with a rest that no
// token continues, is one unk token as a whole. An unk token that is needed and not in the vocabulary is a
// ContentsError.
class WordPiece : public TokenModel {
 public:
  WordPiece(Vocab vocab, std::string unk, const std::string& prefix, i64 max_chars);

  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<i32>& out) const override;

 private:
  std::string unk_text_;
  i32 unk_;
  i64 max_chars_;
  Trie first_, continuing_;
};

// A piece is a token, or unk.
class WordLevel : public TokenModel {
 public:
  WordLevel(Vocab vocab, std::string unk);

  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<i32>& out) const override;

 private:
  std::string unk_text_;
  i32 unk_;
};

}  // namespace redco
