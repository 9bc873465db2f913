// The model of a tokenizer: encodes one piece of text as ids.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/models/vocab.h"

namespace redco {

// Reusable memory of encode(): buffers and the cache of pieces. One thread uses it at a time.
class ModelScratch {
 public:
  virtual ~ModelScratch() = default;
};

// Immutable after construction. Threads share a model; each has its own scratch.
class TokenModel {
 public:
  explicit TokenModel(Vocab vocab) : vocab_(std::move(vocab)) {}
  virtual ~TokenModel() = default;

  virtual std::unique_ptr<ModelScratch> make_scratch() const = 0;

  // Appends the ids of `piece`, which is UTF-8, or raw bytes if takes_bytes().
  virtual void encode(std::string_view piece, ModelScratch& scratch, std::vector<i32>& out) const = 0;

  // The same with each token's text. The default is the text in the vocabulary.
  virtual void tokenize(std::string_view piece, ModelScratch& scratch, std::vector<i32>& ids,
                        std::vector<std::string>& tokens) const {
    const std::size_t before = ids.size();
    encode(piece, scratch, ids);
    for (std::size_t k = before; k < ids.size(); ++k) tokens.emplace_back(vocab().token(ids[k]));
  }

  // Whether the model accepts raw bytes after a ByteLevel pre-tokenizer and maps them to the byte alphabet.
  virtual bool takes_bytes() const { return false; }

  // Whether the token is a control token without text: <unk>, <s>.
  virtual bool is_control(i32 /*id*/) const { return false; }

  // Whether the ids of a text are the same for any split into pieces.
  virtual bool cuts_anywhere() const { return false; }

  const Vocab& vocab() const { return vocab_; }

 private:
  Vocab vocab_;
};

}  // namespace redco
