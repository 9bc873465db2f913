// The last stage of a tokenizer: one piece of text to ids.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/models/vocab.h"

namespace redco {

// What one encode() at a time needs and the next can use again: buffers, the cache of pieces seen.
class ModelScratch {
 public:
  virtual ~ModelScratch() = default;
};

// Const after construction: threads share a model, each with its own scratch.
class TokenModel {
 public:
  explicit TokenModel(Vocab vocab) : vocab_(std::move(vocab)) {}
  virtual ~TokenModel() = default;

  virtual std::unique_ptr<ModelScratch> make_scratch() const = 0;

  // Appends the ids of `piece`. The piece is UTF-8, or raw bytes where takes_bytes().
  virtual void encode(std::string_view piece, ModelScratch& scratch, std::vector<i32>& out) const = 0;

  // The same with each token's text: the vocabulary's, unless the model says otherwise.
  virtual void tokenize(std::string_view piece, ModelScratch& scratch, std::vector<i32>& ids,
                        std::vector<std::string>& tokens) const {
    const std::size_t before = ids.size();
    encode(piece, scratch, ids);
    for (std::size_t k = before; k < ids.size(); ++k) tokens.emplace_back(vocab().token(ids[k]));
  }

  // True: behind a ByteLevel pre-tokenizer the pieces are handed over as raw bytes and the model maps them to
  // the byte alphabet by itself.
  virtual bool takes_bytes() const { return false; }

  // True for tokens with a role instead of text: <unk>, <s>.
  virtual bool is_control(i32 /*id*/) const { return false; }

  // True where a text's ids don't depend on how it is cut into pieces.
  virtual bool cuts_anywhere() const { return false; }

  const Vocab& vocab() const { return vocab_; }

 private:
  Vocab vocab_;
};

}  // namespace redco
