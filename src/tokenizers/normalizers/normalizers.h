// The first stage of a tokenizer: text to text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace redco {

// Where a text may be cut so that a stage of the tokenizer does the same to the halves: before a character of
// these that follows an ASCII letter or digit.
enum CutKinds : unsigned { kNoCuts = 0, kCutSpaces = 1, kCutNewlines = 2, kCutBoth = 3 };

// Const and thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // REQUIRES valid UTF-8; gives valid UTF-8.
  virtual std::string normalize(std::string_view text) const = 0;

  // True where `text` comes out as it is; a quick look that may miss some.
  virtual bool unchanged(std::string_view text) const = 0;

  // Whether the first character that comes out stems from the first of `text`. Metaspace's "first" looks at
  // it.
  virtual bool keeps_front(std::string_view) const { return true; }

  virtual unsigned cuts() const = 0;  // CutKinds
};

// The `normalizer` of a tokenizer.json; `where` is in front of errors. Every type of Hugging Face's
// tokenizers 0.23: NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, Precompiled, Replace, Prepend,
// BertNormalizer, ByteLevel and Sequence; anything else is a ContentsError. Null for a JSON null.
std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& value, const std::string& where);

}  // namespace redco
