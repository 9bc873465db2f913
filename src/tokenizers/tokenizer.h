// Tokenizers: text to ids and back, exactly as Hugging Face's `tokenizers` library does it from the same
// files.
//
//   auto t = load_tokenizer("path/to/hf_folder");       // or one of its files, or "bytes"
//   std::vector<i32> ids = t->encode("How are you?");   // with the special tokens that the file asks for
//   std::string text = t->decode(ids, true);            // without them
//
// A tokenizer is const after loading: any number of threads may use one at once.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// Ids of tokens with a role, as tokenizer_config.json (or special_tokens_map.json) names them.
struct SpecialIds {
  std::optional<i32> bos, eos, unk, pad, cls, sep, mask;
};

struct Encoding {
  std::vector<i32> ids;
  std::vector<i32> type_ids;  // as many: which of the two sequences each belongs to
};

// One file of a tokenizer's folder.
struct TokenizerFile {
  std::string name, contents;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The ids of `text`; add_special puts the special tokens around it that the tokenizer's template says.
  // Errors: text that is not UTF-8 is a ContentsError with the byte's position (`bytes` takes any bytes); so
  // is a regular expression that gives up.
  virtual std::vector<i32> encode(std::string_view text, bool add_special = true) const = 0;

  // The same for text, or text and pair, cut to at most max_length ids, special ones included: the longer
  // sequence loses tokens from its right end first ("longest_first"). UsageError where the special tokens
  // alone are more than max_length.
  virtual Encoding encode_truncated(std::string_view text, i64 max_length, bool add_special = true) const = 0;
  virtual Encoding encode_pair(std::string_view text, std::string_view pair,
                               std::optional<i64> max_length = {}, bool add_special = true) const = 0;

  // encode(), with each token's text beside its id: the vocabulary's, but the text's own where an added token
  // took white space with it ("  <mask>").
  struct Tokens {
    std::vector<i32> ids;
    std::vector<std::string> tokens;
  };
  virtual Tokens tokenize(std::string_view text, bool add_special = true) const = 0;

  // The tokens' texts in the vocabulary. BugError for an id that has no token.
  virtual std::vector<std::string> tokens(std::span<const i32> ids) const = 0;

  // The text of `ids`, UTF-8 (ill-formed bytes become U+FFFD). Ids without a token give nothing.
  virtual std::string decode(std::span<const i32> ids, bool skip_special = false) const = 0;

  // Rows that an embedding needs: the largest id + 1.
  virtual i32 vocab_size() const = 0;
  virtual std::optional<i32> token_to_id(std::string_view token) const = 0;
  virtual std::optional<std::string> id_to_token(i32 id) const = 0;
  virtual bool is_special(i32 id) const = 0;

  const SpecialIds& special() const { return special_; }

  // A position p in (0, text.size()), the last there is, such that the ids of text[0, p) followed by those of
  // text[p, end) are those of `text`, without special tokens and whatever follows `text`; nothing where none
  // is known. Long files are tokenized block by block with it.
  virtual std::optional<std::size_t> last_cut(std::string_view text) const = 0;

  // True where encode() takes bytes that are no UTF-8.
  virtual bool takes_any_bytes() const = 0;

  // 32 hex digits that change whenever some text could get other ids.
  virtual std::string fingerprint() const = 0;

  // What it was loaded from, for messages.
  virtual const std::string& name() const = 0;

  // The tokenizer's files, for a checkpoint folder that transformers loads. ContentsError if one of them has
  // changed since the tokenizer was loaded.
  virtual std::vector<TokenizerFile> files() const = 0;

  // Writes them, each durably, into `folder`, which exists.
  void save(const std::string& folder) const;

 protected:
  SpecialIds special_;
};

// what: one of
//   - `bytes`: 256 bytes and <|endoftext|>;
//   - a folder with tokenizer.json; else with vocab.json and merges.txt (GPT-2, RoBERTa, Qwen2), a
//     sentencepiece model (tokenizer.model, spiece.model, sentencepiece.bpe.model: Llama, T5, or neither) or
//     vocab.txt (BERT), which with tokenizer_config.json stand for what transformers takes them for;
//   - a tokenizer.json or vocab.txt itself; or a sentencepiece .model, whose ids then are those of the
//     sentencepiece library, without special tokens.
// UsageError (exit code 2) for a path that doesn't exist or a folder without these files, ContentsError (3)
// for what is in them: everything redco doesn't know is an error that names the field.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& what);

}  // namespace redco
