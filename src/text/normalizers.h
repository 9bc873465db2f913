// The first stage of a tokenizer: text to text.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace redco {

// Const and thread-safe.
class Normalizer {
 public:
  virtual ~Normalizer() = default;

  // REQUIRES valid UTF-8; gives valid UTF-8.
  virtual std::string normalize(std::string_view text) const = 0;

  // True where `text` comes out as it is; a quick look that may miss some.
  virtual bool unchanged(std::string_view text) const = 0;

  // True where text may be cut before an ASCII space or line break that follows an ASCII letter or digit, and
  // the halves normalized by themselves.
  virtual bool cuts_at_spaces() const = 0;
};

// The `normalizer` of a tokenizer.json; `where` is in front of errors. NFC, NFD, NFKC, NFKD, Lowercase,
// Strip, StripAccents, Prepend, Replace and Sequence; anything else is a ContentsError. Null for a JSON null.
std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& value, const std::string& where);

}  // namespace redco
