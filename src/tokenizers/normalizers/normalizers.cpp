#include "tokenizers/normalizers/normalizers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/base64.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/normalizers/bert_normalizer.h"
#include "tokenizers/normalizers/precompiled.h"
#include "tokenizers/normalizers/replacement.h"
#include "tokenizers/pre_tokenizers/byte_level.h"
#include "unicode/char_class.h"
#include "unicode/hf_chars.h"
#include "unicode/normal_forms.h"

namespace redco {
namespace {

constexpr std::size_t kMaxPrepend = 1024;  // bytes

class UnicodeForm : public Normalizer {
 public:
  explicit UnicodeForm(NormalForm form) : form_(form) {}
  std::string normalize(std::string_view text) const override {
    return unchanged(text) ? std::string(text) : to_normal_form(text, form_);
  }
  bool unchanged(std::string_view text) const override { return surely_in_form(text, form_); }
  unsigned cuts() const override { return kCutBoth; }  // neither character combines with an ASCII neighbour

 private:
  NormalForm form_;
};

class Lowercase : public Normalizer {
 public:
  std::string normalize(std::string_view text) const override {
    std::string out;
    out.reserve(text.size());
    // One character at a time without context, as in Hugging Face: a sigma never gets its final form.
    for (const char *p = text.data(), *end = p + text.size(); p < end;) append_lower(next_code_point(p), out);
    return out;
  }
  bool unchanged(std::string_view text) const override {
    for (char c : text)
      if ((c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80) return false;
    return true;
  }
  unsigned cuts() const override { return kCutBoth; }
};

class Strip : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}
  std::string normalize(std::string_view text) const override {
    const auto* classes = char_classes();
    const char* p = text.data();
    const char* end = p + text.size();
    while (left_ && p < end) {
      const char* q = p;
      if (!(classes[next_code_point(q)] & kSpace)) break;
      p = q;
    }
    while (right_ && p < end) {
      const char* start = previous_character(p, end);
      const char* q = start;
      if (!(classes[next_code_point(q)] & kSpace)) break;
      end = start;
    }
    return {p, static_cast<std::size_t>(end - p)};
  }
  bool unchanged(std::string_view text) const override { return text.empty(); }
  bool keeps_front(std::string_view text) const override {
    const char* p = text.data();
    return !left_ || text.empty() || !(char_classes()[next_code_point(p)] & kSpace);
  }
  unsigned cuts() const override { return kNoCuts; }

 private:
  bool left_, right_;
};

class StripAccents : public Normalizer {
 public:
  std::string normalize(std::string_view text) const override {
    std::string out;
    for (const char *p = text.data(), *end = p + text.size(); p < end;) {
      const char* start = p;
      if (!is_mark(next_code_point(p))) out.append(start, p);
    }
    return out;
  }
  bool unchanged(std::string_view text) const override {
    for (char c : text)
      if (static_cast<unsigned char>(c) >= 0xCC) return false;  // below U+0300 there is no mark
    return true;
  }
  bool keeps_front(std::string_view text) const override {
    const char* p = text.data();
    return text.empty() || !is_mark(next_code_point(p));
  }
  unsigned cuts() const override { return kCutBoth; }

 private:
  static bool is_mark(char32_t c) { return hf_classes()[c] & kHfMark; }
};

// The rules that sentencepiece calls nmt, without NFKC.
class Nmt : public Normalizer {
 public:
  std::string normalize(std::string_view text) const override {
    std::string out;
    out.reserve(text.size());
    for (const char *p = text.data(), *end = p + text.size(); p < end;) {
      const char* start = p;
      const char32_t c = next_code_point(p);
      if (is_removed(c)) continue;
      if (is_space(c))
        out += ' ';
      else
        out.append(start, p);
    }
    return out;
  }
  bool unchanged(std::string_view text) const override {
    for (char c : text)
      if (c < ' ' || c == 0x7F || static_cast<unsigned char>(c) >= 0x80) return false;
    return true;
  }
  bool keeps_front(std::string_view text) const override {
    const char* p = text.data();
    return text.empty() || !is_removed(next_code_point(p));
  }
  unsigned cuts() const override { return kCutBoth; }

 private:
  static bool is_removed(char32_t c) {
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F;
  }
  static bool is_space(char32_t c) {
    return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 || (c >= 0x200B && c <= 0x200F) ||
           c == 0x2028 || c == 0x2029 || c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
  }
};

// Replaces each byte by its character of the byte alphabet.
class ByteLevelNormalizer : public Normalizer {
 public:
  std::string normalize(std::string_view text) const override {
    std::string out;
    append_byte_level(text, out);
    return out;
  }
  bool unchanged(std::string_view text) const override {
    return std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7F; });
  }
  unsigned cuts() const override { return kNoCuts; }  // the next stage gets no space
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}
  std::string normalize(std::string_view text) const override {
    return text.empty() ? std::string() : text_ + std::string(text);
  }
  bool unchanged(std::string_view text) const override { return text.empty(); }
  unsigned cuts() const override { return kNoCuts; }

 private:
  std::string text_;
};

class Replace : public Normalizer {
 public:
  explicit Replace(Replacement what) : what_(std::move(what)) {}
  std::string normalize(std::string_view text) const override { return what_.apply(text); }
  bool unchanged(std::string_view text) const override { return what_.unchanged(text); }
  // The replacement of several characters counts as coming from the last of them.
  bool keeps_front(std::string_view text) const override {
    const std::size_t matched = what_.at_front(text);
    if (matched == 0) return true;
    const char* p = text.data();
    next_code_point(p);
    return !what_.content().empty() && p == text.data() + matched;
  }
  unsigned cuts() const override { return kNoCuts; }

 private:
  Replacement what_;
};

class NormalizerSequence : public Normalizer {
 public:
  explicit NormalizerSequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  std::string normalize(std::string_view text) const override {
    std::string out(text);
    for (const auto& p : parts_)
      if (!p->unchanged(out)) out = p->normalize(out);
    return out;
  }
  bool unchanged(std::string_view text) const override {
    return std::all_of(parts_.begin(), parts_.end(), [&](const auto& p) { return p->unchanged(text); });
  }
  bool keeps_front(std::string_view text) const override {
    std::string now(text);
    for (const auto& p : parts_) {
      if (!p->keeps_front(now)) return false;
      if (!p->unchanged(now)) now = p->normalize(now);
    }
    return true;
  }
  unsigned cuts() const override {
    unsigned kinds = kCutBoth;
    for (const auto& p : parts_) kinds &= p->cuts();
    return kinds;
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

}  // namespace

std::unique_ptr<Normalizer> make_normalizer(const nlohmann::json& value, const std::string& where) {
  if (value.is_null()) return nullptr;
  JsonFields f(value, where);
  const std::string type = f.text("type");
  std::unique_ptr<Normalizer> made;
  if (type == "NFC") {
    made = std::make_unique<UnicodeForm>(NormalForm::nfc);
  } else if (type == "NFD") {
    made = std::make_unique<UnicodeForm>(NormalForm::nfd);
  } else if (type == "NFKC") {
    made = std::make_unique<UnicodeForm>(NormalForm::nfkc);
  } else if (type == "NFKD") {
    made = std::make_unique<UnicodeForm>(NormalForm::nfkd);
  } else if (type == "Nmt") {
    made = std::make_unique<Nmt>();
  } else if (type == "ByteLevel") {
    made = std::make_unique<ByteLevelNormalizer>();
  } else if (type == "Precompiled") {
    const std::string at = f.at("precompiled_charsmap");
    made = std::make_unique<Precompiled>(Charsmap(decode_base64(f.text("precompiled_charsmap"), at), at));
  } else if (type == "BertNormalizer") {
    const bool clean = f.boolean("clean_text"), chinese = f.boolean("handle_chinese_chars"),
               lower = f.boolean("lowercase");
    made = std::make_unique<BertNormalizer>(clean, chinese, f.boolean("strip_accents", lower), lower);
  } else if (type == "Lowercase") {
    made = std::make_unique<Lowercase>();
  } else if (type == "Strip") {
    const bool left = f.boolean("strip_left"), right = f.boolean("strip_right");
    made = std::make_unique<Strip>(left, right);
  } else if (type == "StripAccents") {
    made = std::make_unique<StripAccents>();
  } else if (type == "Prepend") {
    const std::string text = f.text("prepend");
    if (text.size() > kMaxPrepend)
      throw ContentsError("{}: {} bytes; at most {} are supported", f.at("prepend"), text.size(),
                          kMaxPrepend);
    made = std::make_unique<Prepend>(text);
  } else if (type == "Replace") {
    made = std::make_unique<Replace>(Replacement(f));
  } else if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> parts;
    const auto& list = f.array("normalizers");
    for (std::size_t k = 0; k < list.size(); ++k)
      if (auto p = make_normalizer(list[k], fmt::format("{}[{}]", f.at("normalizers"), k)))
        parts.push_back(std::move(p));
    made = std::make_unique<NormalizerSequence>(std::move(parts));
  } else {
    unknown_type(where, type,
                 "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Nmt, Precompiled, Replace, Prepend, "
                 "BertNormalizer, ByteLevel, Sequence");
  }
  f.finish();
  return made;
}

}  // namespace redco
