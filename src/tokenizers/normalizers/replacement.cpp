#include "tokenizers/normalizers/replacement.h"

#include "base/error.h"
#include "base/utf8.h"

namespace redco {
namespace {

constexpr std::size_t kMaxReplacement = 1024;                   // bytes of the replacement
constexpr std::size_t kMaxReplacedText = std::size_t{1} << 28;  // bytes of the resulting text

}  // namespace

std::string replace_all(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  if (from.empty()) {
    for (const char *p = text.data(), *end = p + text.size(); p < end;) {
      const char* start = p;
      next_code_point(p);
      out += to;
      out.append(start, p);
    }
    return out += to;
  }
  std::size_t done = 0;
  for (auto at = text.find(from); at != std::string_view::npos; at = text.find(from, done)) {
    out += text.substr(done, at - done);
    out += to;
    done = at + from.size();
  }
  return out += text.substr(done);
}

Replacement::Replacement(JsonFields& f) {
  JsonFields pattern(f.need("pattern"), f.at("pattern"));
  if (pattern.find("Regex") != nullptr)
    regex_ = std::make_unique<Regex>(pattern.text("Regex"), pattern.at("Regex"));
  else
    literal_ = pattern.text("String");
  pattern.finish();
  if (regex_ == nullptr && literal_.empty())
    throw ContentsError("{}: an empty string can't be replaced; give a text of one character or more",
                        pattern.at("String"));
  content_ = f.text("content");
  if (content_.size() > kMaxReplacement)
    throw ContentsError("{}: {} bytes; at most {} are supported", f.at("content"), content_.size(),
                        kMaxReplacement);
}

std::string Replacement::apply(std::string_view text) const {
  std::string out;
  std::size_t done = 0;
  auto replace = [&](std::size_t from, std::size_t to) {
    out += text.substr(done, from - done);
    out += content_;
    done = to;
    if (out.size() > kMaxReplacedText)  // repeated Replace rules can multiply the text's size without limit
      throw ContentsError(
          "[tokenizer] a text of {} bytes becomes more than {} bytes with the replacement '{}'", text.size(),
          kMaxReplacedText, content_.substr(0, 100));
  };
  if (regex_ != nullptr)
    for (const auto& [from, to] : regex_->find_all(text)) replace(from, to);
  else
    for (auto at = text.find(literal_); at != std::string_view::npos; at = text.find(literal_, done))
      replace(at, at + literal_.size());
  return out += text.substr(done);
}

std::size_t Replacement::at_front(std::string_view text) const {
  if (regex_ == nullptr) return text.starts_with(literal_) ? literal_.size() : 0;
  const auto all = regex_->find_all(text);
  return all.empty() || all.front().first != 0 ? 0 : all.front().second;
}

}  // namespace redco
