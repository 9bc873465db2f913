#include "pipelines/words.h"

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "unicode/char_class.h"
#include "unicode/python_text.h"

namespace redco {

std::vector<Word> words_of_text(std::string_view text) {
  const std::uint8_t* classes = char_classes();
  const auto is_mark = [&](char32_t c) {  // also the symbols of ASCII, as BERT's splitter
    return (classes[c] & kPunctuation) != 0 ||
           (c > ' ' && c < 127 && (classes[c] & (kLetter | kNumber)) == 0);
  };
  std::vector<Word> out;
  const char* p = text.data();
  const char* const end = p + text.size();
  bool inside = false;  // of letters that the next character may continue
  for (i64 at = 0; p < end; ++at) {
    const char* const begin = p;
    const char32_t c = next_code_point(p);
    if (is_python_space(c)) {
      inside = false;
      continue;
    }
    const bool mark = is_mark(c);
    if (!inside || mark) {
      const bool joined = !out.empty() && out.back().end == at;
      out.push_back({"", at, at, joined});
    }
    out.back().text.append(begin, p);
    out.back().end = at + 1;
    inside = !mark;
  }
  return out;
}

std::vector<Word> words_of_list(const std::vector<std::string>& words) {
  std::vector<Word> out;
  for (const std::string& w : words) {
    const i64 i = static_cast<i64>(out.size());
    out.push_back({w, i, i + 1, false});
  }
  return out;
}

WordTokens tokens_of_words(const Tokenizer& tokenizer, std::span<const Word> words) {
  WordTokens out;
  for (std::size_t w = 0; w < words.size(); ++w) {
    out.first.push_back(static_cast<i32>(out.ids.size()));
    const bool blank = w > 0 && !words[w].joined;
    const std::vector<i32> ids = tokenizer.encode((blank ? " " : "") + words[w].text, false);
    out.ids.insert(out.ids.end(), ids.begin(), ids.end());
  }
  out.first.push_back(static_cast<i32>(out.ids.size()));
  return out;
}

TextFrame text_frame(const Tokenizer& tokenizer) {
  const std::vector<i32> bare = tokenizer.encode("a", false), whole = tokenizer.encode("a", true);
  const auto at = std::search(whole.begin(), whole.end(), bare.begin(), bare.end());
  if (bare.empty() || at == whole.end())
    throw UsageError("[tokenizer] {}: a text with special tokens does not contain the text's own tokens",
                     tokenizer.name());
  return {{whole.begin(), at}, {at + static_cast<std::ptrdiff_t>(bare.size()), whole.end()}};
}

std::string text_between(std::string_view text, i64 begin, i64 end) {
  const char* p = text.data();
  const char* const last = p + text.size();
  for (i64 i = 0; i < begin && p < last; ++i) next_code_point(p);
  const char* const from = p;
  for (i64 i = begin; i < end && p < last; ++i) next_code_point(p);
  return {from, p};
}

}  // namespace redco
