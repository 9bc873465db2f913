// Normalizers: the first stage of a tokenizer, text to text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace redco {

// The characters before which a text may be split, if an ASCII letter or digit precedes them: a stage gives
// the same results for the halves as for the whole.
enum CutKinds : unsigned { kNoCuts = 0, kCutSpaces = 1, kCutNewlines = 2, kCutBoth = 3 };

// Immutable and thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // REQUIRES valid UTF-8; returns valid UTF-8.
  virtual std::string normalize(std::string_view text) const = 0;

  // A fast check: true means that normalize() returns `text` unchanged. False means that it may or may not.
  virtual bool unchanged(std::string_view text) const = 0;

  // Whether the first character of the result comes from the first character of `text`. Metaspace's scheme
  // "first" depends on it.
  virtual bool keeps_front(std::string_view) const { return true; }

  virtual unsigned cuts() const = 0;  // CutKinds
};

// Makes the `normalizer` of a tokenizer.json; errors start with `where`. All types of Hugging Face's
// tokenizers 0.23 are supported: NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, Precompiled,
// Replace, Prepend, BertNormalizer, ByteLevel and Sequence. Anything else is a ContentsError. nullptr for a
// JSON null.
std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& value, const std::string& where);

}  // namespace redco
