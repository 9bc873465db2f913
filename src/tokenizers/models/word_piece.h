// The models WordPiece and WordLevel, with the details of Hugging Face's.
#pragma once

#include <string>

#include "tokenizers/models/model.h"
#include "tokenizers/models/trie.h"

namespace redco {

// BERT's model: the longest token that is a prefix of the word, then the longest token that continues it
// (with `prefix` in the vocabulary), and so on. A word of more than max_chars characters becomes one unk
// token; so does a word that no sequence of such tokens covers. A missing unk token is a ContentsError when a
// text needs it.
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

// Each piece is one token, or unk.
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
