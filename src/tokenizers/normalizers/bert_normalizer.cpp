#include "tokenizers/normalizers/bert_normalizer.h"

#include "base/utf8.h"
#include "unicode/char_class.h"
#include "unicode/hf_chars.h"
#include "unicode/normal_forms.h"

namespace redco {
namespace {

// The Unicode blocks of BERT's original code, including its gap before U+2B920.
bool is_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_white(char32_t c) { return char_classes()[c] & kSpace; }

bool is_cleaned(char32_t c) { return hf_classes()[c] & kHfOther; }

}  // namespace

std::string BertNormalizer::normalize(std::string_view text) const {
  std::string out;
  out.reserve(text.size() + 8);
  bool ascii = true;
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    const auto b = static_cast<unsigned char>(*p);
    if (b < 0x80) {
      ++p;
      if (clean_ && is_cleaned(b)) continue;
      if (clean_ && is_white(b))
        out += ' ';
      else
        out += lower_ && b >= 'A' && b <= 'Z' ? static_cast<char>(b + ('a' - 'A')) : static_cast<char>(b);
      continue;
    }
    const char32_t c = next_code_point(p);
    if (clean_ && is_cleaned(c)) continue;
    if (clean_ && is_white(c)) {
      out += ' ';
      continue;
    }
    ascii = false;
    const bool spaced = chinese_ && is_chinese(c);
    if (spaced) out += ' ';
    append_utf8(c, out);
    if (spaced) out += ' ';
  }
  if (ascii) return out;
  if (accents_) {
    if (!surely_in_form(out, NormalForm::nfd)) out = to_normal_form(out, NormalForm::nfd);
    std::string kept;
    for (const char *p = out.data(), *end = p + out.size(); p < end;) {
      const char* start = p;
      if (!(hf_classes()[next_code_point(p)] & kHfNonspacing)) kept.append(start, p);
    }
    out = std::move(kept);
  }
  if (lower_) {
    std::string low;
    for (const char *p = out.data(), *end = p + out.size(); p < end;) append_lower(next_code_point(p), low);
    out = std::move(low);
  }
  return out;
}

bool BertNormalizer::unchanged(std::string_view text) const {
  for (char c : text)
    if (static_cast<unsigned char>(c) >= 0x80 || (lower_ && c >= 'A' && c <= 'Z') ||
        (clean_ && (c < ' ' || c == 0x7F)))
      return false;
  return true;
}

bool BertNormalizer::keeps_front(std::string_view text) const {
  if (text.empty()) return true;
  const char* p = text.data();
  const char32_t c = next_code_point(p);
  return !(clean_ && is_cleaned(c)) && !(accents_ && (hf_classes()[c] & kHfNonspacing));
}

}  // namespace redco
