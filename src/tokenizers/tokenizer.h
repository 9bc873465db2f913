// Tokenizers: text to ids and back. Ids and texts are exactly those of Hugging Face's `tokenizers` library
// with the same files.
//
//   auto t = load_tokenizer("path/to/hf_folder");       // or one of its files, or "bytes"
//   std::vector<i32> ids = t->encode("How are you?");   // with special tokens
//   std::string text = t->decode(ids, true);            // without them
//
// A tokenizer is immutable after loading and thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// Ids of the special tokens that tokenizer_config.json (or special_tokens_map.json) names.
struct SpecialIds {
  std::optional<i32> bos, eos, unk, pad, cls, sep, mask;
};

struct Encoding {
  std::vector<i32> ids;
  std::vector<i32>
      type_ids;  // of each id: 0 for the first sequence, 1 for the second; or as the template says
};

// A file of a tokenizer's folder.
struct TokenizerFile {
  std::string name, contents;
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The ids of `text`; add_special adds the special tokens of the post-processor. ContentsError with the
  // byte's position for text that is not UTF-8 (`bytes` accepts any bytes); also if a regular expression
  // reaches its backtracking limit.
  virtual std::vector<i32> encode(std::string_view text, bool add_special = true) const = 0;

  // The same for a text, or a text and its pair, truncated to max_length ids including special tokens. The
  // longer sequence loses tokens at its right end first ("longest_first"). UsageError if max_length is less
  // than the number of special tokens.
  virtual Encoding encode_truncated(std::string_view text, i64 max_length, bool add_special = true) const = 0;
  virtual Encoding encode_pair(std::string_view text, std::string_view pair,
                               std::optional<i64> max_length = {}, bool add_special = true) const = 0;

  // The tokenizer of target texts of translations: with the target language's code (NLLB, mBART) or model
  // (Marian). For others, the tokenizer itself.
  virtual const Tokenizer& target() const { return *this; }

  // encode() with each token's text: the text in the vocabulary, or the matched text for an added token that
  // includes white space ("  <mask>").
  struct Tokens {
    std::vector<i32> ids;
    std::vector<std::string> tokens;
  };
  virtual Tokens tokenize(std::string_view text, bool add_special = true) const = 0;

  // The tokens' texts in the vocabulary. BugError for an id without a token.
  virtual std::vector<std::string> tokens(std::span<const i32> ids) const = 0;

  // The text of `ids` in UTF-8; ill-formed bytes become U+FFFD. Ids without a token are skipped.
  virtual std::string decode(std::span<const i32> ids, bool skip_special = false) const = 0;

  // The number of rows of an embedding: the largest id + 1.
  virtual i32 vocab_size() const = 0;
  virtual std::optional<i32> token_to_id(std::string_view token) const = 0;
  virtual std::optional<std::string> id_to_token(i32 id) const = 0;
  virtual bool is_special(i32 id) const = 0;

  const SpecialIds& special() const { return special_; }

  // The last known position p in (0, text.size()) at which `text` may be split: the ids of text[0, p)
  // followed by those of text[p, end) are the ids of `text`, without special tokens and whatever follows
  // `text`. nullopt if none is known. Long files are tokenized in blocks that end at such positions.
  virtual std::optional<std::size_t> last_cut(std::string_view text) const = 0;

  // Whether encode() accepts bytes that are not UTF-8.
  virtual bool takes_any_bytes() const = 0;

  // 32 hex digits. They differ if any text could get different ids.
  virtual std::string fingerprint() const = 0;

  // The path or name that it was loaded from, for messages.
  virtual const std::string& name() const = 0;

  // The tokenizer's files, for a checkpoint folder that transformers can load. ContentsError if one of them
  // has changed since the tokenizer was loaded.
  virtual std::vector<TokenizerFile> files() const = 0;

  // Writes the files durably into `folder`, which must exist.
  void save(const std::string& folder) const;

 protected:
  SpecialIds special_;
};

// Loads a tokenizer. what: one of
//   - `bytes`: 256 bytes and <|endoftext|>;
//   - a folder with tokenizer.json; else with vocab.json and merges.txt (GPT-2, RoBERTa, Qwen2, CLIP,
//     Whisper), a sentencepiece model (tokenizer.model, spiece.model, sentencepiece.bpe.model, spm.model),
//     vocab.json with sentencepiece models (Marian, M2M100), tiktoken ranks (tokenizer.model, tekken.json),
//     vocab.txt (BERT), or the class ByT5Tokenizer, which has no vocabulary. tokenizer_config.json and the
//     model_type of config.json decide their pipeline as they do in transformers;
//   - the path of a tokenizer.json or vocab.txt; or of a sentencepiece .model, whose ids then are those of
//     the sentencepiece library, without special tokens.
// UsageError (exit code 2) for a path that doesn't exist or a folder without these files. ContentsError (3)
// for errors in the files; an unknown field is an error that names it.
std::unique_ptr<Tokenizer> load_tokenizer(const std::string& what);

// Whether `folder` has a tokenizer that load_tokenizer() reads or explains.
bool has_tokenizer(const std::string& folder);

}  // namespace redco
