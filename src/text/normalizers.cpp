#include "text/normalizers.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "text/char_class.h"
#include "text/json_fields.h"
#include "text/regex.h"
#include "text/utf8.h"

namespace redco {
namespace {

// Where the first character at or above U+0300 starts (all below it are their own NFC), or npos.
std::size_t first_at_or_above_300(std::string_view text) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (static_cast<unsigned char>(text[i]) >= 0xCC) return i;
  return std::string_view::npos;
}

bool is_ascii(std::string_view text) {
  for (char c : text)
    if (static_cast<unsigned char>(c) >= 0x80) return false;
  return true;
}

class UnicodeForm : public Normalizer {
 public:
  UnicodeForm(int options, bool composed) : options_(options), composed_(composed) {}

  std::string normalize(std::string_view text) const override {
    if (unchanged(text)) return std::string(text);
    utf8proc_uint8_t* result = nullptr;
    const auto n = utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                static_cast<utf8proc_ssize_t>(text.size()), &result,
                                static_cast<utf8proc_option_t>(options_ | UTF8PROC_STABLE));
    std::unique_ptr<utf8proc_uint8_t, void (*)(void*)> owner(result, std::free);
    if (n < 0) throw ContentsError("[tokenizer] Unicode normalization: {}", utf8proc_errmsg(n));
    return {reinterpret_cast<const char*>(result), static_cast<std::size_t>(n)};
  }
  bool unchanged(std::string_view text) const override {
    return composed_ ? first_at_or_above_300(text) == std::string_view::npos : is_ascii(text);
  }
  bool cuts_at_spaces() const override {
    return true;
  }  // neither letter nor space combines with an ASCII neighbour

 private:
  int options_;
  bool composed_;  // NFC: everything below U+0300 stays
};

class Lowercase : public Normalizer {
 public:
  std::string normalize(std::string_view text) const override {
    std::string out;
    out.reserve(text.size());
    // One character at a time, as Hugging Face has it: no context, so a sigma never takes its final form.
    for (const char *p = text.data(), *end = p + text.size(); p < end;) {
      const char32_t c = next_code_point(p);
      if (c == 0x130)  // the one capital whose lower case is two characters
        out += "i\xCC\x87";
      else
        append_utf8(static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))), out);
    }
    return out;
  }
  bool unchanged(std::string_view text) const override {
    for (char c : text)
      if ((c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80) return false;
    return true;
  }
  bool cuts_at_spaces() const override { return true; }
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
  bool cuts_at_spaces() const override { return false; }

 private:
  bool left_, right_;
};

class StripAccents : public Normalizer {
 public:
  std::string normalize(std::string_view text) const override {
    std::string out;
    for (const char *p = text.data(), *end = p + text.size(); p < end;) {
      const char32_t c = next_code_point(p);
      const auto category = utf8proc_category(static_cast<utf8proc_int32_t>(c));
      if (category != UTF8PROC_CATEGORY_MN && category != UTF8PROC_CATEGORY_MC &&
          category != UTF8PROC_CATEGORY_ME)
        append_utf8(c, out);
    }
    return out;
  }
  bool unchanged(std::string_view text) const override {
    return first_at_or_above_300(text) == std::string_view::npos;
  }
  bool cuts_at_spaces() const override { return true; }
};

class Prepend : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}
  std::string normalize(std::string_view text) const override {
    return text.empty() ? std::string() : text_ + std::string(text);
  }
  bool unchanged(std::string_view text) const override { return text.empty(); }
  bool cuts_at_spaces() const override { return false; }

 private:
  std::string text_;
};

class Replace : public Normalizer {
 public:
  Replace(std::unique_ptr<Regex> regex, std::string literal, std::string content)
      : regex_(std::move(regex)), literal_(std::move(literal)), content_(std::move(content)) {}
  std::string normalize(std::string_view text) const override {
    std::string out;
    std::size_t done = 0;
    auto replace = [&](std::size_t from, std::size_t to) {
      out += text.substr(done, from - done);
      out += content_;
      done = to;
    };
    if (regex_ != nullptr) {
      for (const auto& [from, to] : regex_->find_all(text)) replace(from, to);
    } else {
      for (auto at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, done))
        replace(at, at + literal_.size());
    }
    out += text.substr(done);
    return out;
  }
  bool unchanged(std::string_view text) const override {
    return regex_ == nullptr && text.find(literal_) == std::string_view::npos;
  }
  bool cuts_at_spaces() const override { return false; }

 private:
  std::unique_ptr<Regex> regex_;
  std::string literal_, content_;
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
  bool cuts_at_spaces() const override {
    return std::all_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->cuts_at_spaces(); });
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
    made = std::make_unique<UnicodeForm>(UTF8PROC_COMPOSE, true);
  } else if (type == "NFD") {
    made = std::make_unique<UnicodeForm>(UTF8PROC_DECOMPOSE, false);
  } else if (type == "NFKC") {
    made = std::make_unique<UnicodeForm>(UTF8PROC_COMPOSE | UTF8PROC_COMPAT, false);
  } else if (type == "NFKD") {
    made = std::make_unique<UnicodeForm>(UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT, false);
  } else if (type == "Lowercase") {
    made = std::make_unique<Lowercase>();
  } else if (type == "Strip") {
    const bool left = f.boolean("strip_left"), right = f.boolean("strip_right");
    made = std::make_unique<Strip>(left, right);
  } else if (type == "StripAccents") {
    made = std::make_unique<StripAccents>();
  } else if (type == "Prepend") {
    made = std::make_unique<Prepend>(f.text("prepend"));
  } else if (type == "Replace") {
    JsonFields pattern(f.need("pattern"), f.at("pattern"));
    std::unique_ptr<Regex> regex;
    std::string literal;
    if (pattern.find("Regex") != nullptr)
      regex = std::make_unique<Regex>(pattern.text("Regex"), pattern.at("Regex"));
    else
      literal = pattern.text("String");
    pattern.finish();
    if (regex == nullptr && literal.empty())
      throw ContentsError("{}: an empty string can't be replaced", pattern.at("String"));
    made = std::make_unique<Replace>(std::move(regex), literal, f.text("content"));
  } else if (type == "Sequence") {
    std::vector<std::unique_ptr<Normalizer>> parts;
    const auto& list = f.array("normalizers");
    for (std::size_t k = 0; k < list.size(); ++k)
      if (auto p = make_normalizer(list[k], fmt::format("{}[{}]", f.at("normalizers"), k)))
        parts.push_back(std::move(p));
    made = std::make_unique<NormalizerSequence>(std::move(parts));
  } else {
    unknown_type(where, type,
                 "NFC, NFD, NFKC, NFKD, Lowercase, Strip, StripAccents, Prepend, Replace, Sequence");
  }
  f.finish();
  return made;
}

}  // namespace redco
