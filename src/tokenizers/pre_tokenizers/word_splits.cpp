#include "tokenizers/pre_tokenizers/word_splits.h"

#include "base/utf8.h"
#include "unicode/char_class.h"

namespace redco {
namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

constexpr unsigned char kAny = kLetter | kNumber | kSpace;

// One character: its class bits (letter, number, space; 0: none of them) and its end.
struct Next {
  char32_t code;
  unsigned char kind;
  const char* end;
};

inline Next next_at(const char* p, const unsigned char* classes) {
  const char32_t c = next_code_point(p);
  return {c, static_cast<unsigned char>(classes[c] & kAny), p};
}

// The end of the run of characters of class `kind` from p on.
inline const char* run(const char* p, const char* end, unsigned char kind, const unsigned char* classes) {
  while (p < end) {
    const Next n = next_at(p, classes);
    if (n.kind != kind) break;
    p = n.end;
  }
  return p;
}

// The length of the contraction ('s, 't, ...) at the apostrophe p, or 0. fold: ignore case; U+017F (long s)
// counts as s.
inline std::size_t contraction(const char* p, const char* end, bool fold) {
  const auto left = end - p;
  auto letter = [&](int k) -> char {
    const char c = p[k];
    return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  if (left < 2) return 0;
  const char a = letter(1);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return 2;
  if (left < 3) return 0;
  if (fold && p[1] == '\xC5' && p[2] == '\xBF') return 3;
  const char b = letter(2);
  return (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l') ? 3 : 0;
}

// \s+(?!\S)|\s+ for the run of white space [p, e): the whole run at the end of the text or if it has one
// character; else all but its last character, which belongs to the next piece.
inline const char* spaces(const char* p, const char* e, const char* end) {
  if (e == end) return e;
  const char* last = previous_character(p, e);
  return last == p ? e : last;
}

}  // namespace

std::string_view pattern_of(WordSplit kind) {
  return kind == WordSplit::gpt2 ? kGpt2 : kind == WordSplit::llama3 ? kLlama3 : kQwen;
}

std::optional<WordSplit> known_pattern(std::string_view pattern) {
  for (WordSplit k : {WordSplit::gpt2, WordSplit::llama3, WordSplit::qwen})
    if (pattern == pattern_of(k)) return k;
  return std::nullopt;
}

const char* end_of_gpt2_piece(const char* p, const char* end, const unsigned char* classes) {
  if (*p == '\'')
    if (const std::size_t n = contraction(p, end, false)) return p + n;
  const Next first = next_at(p, classes);
  if (first.code == ' ' && first.end < end) {  // " ?" matches one space before a run of other characters
    const Next second = next_at(first.end, classes);
    if (second.kind != kSpace) return run(second.end, end, second.kind, classes);
  }
  const char* e = run(first.end, end, first.kind, classes);
  return first.kind == kSpace ? spaces(p, e, end) : e;
}

const char* end_of_llama3_piece(const char* p, const char* end, const unsigned char* classes,
                                int max_digits) {
  if (*p == '\'')
    if (const std::size_t n = contraction(p, end, true)) return p + n;
  const Next first = next_at(p, classes);
  if (first.kind == kLetter) return run(first.end, end, kLetter, classes);
  if (first.kind == kNumber) {
    const char* q = first.end;
    for (int k = 1; k < max_digits && q < end; ++k) {
      const Next n = next_at(q, classes);
      if (n.kind != kNumber) break;
      q = n.end;
    }
    return q;
  }
  const bool newline = first.code == '\r' || first.code == '\n';
  auto punctuation = [&](const char* q) {  // [^\s\p{L}\p{N}]+[\r\n]* after its first character
    q = run(q, end, 0, classes);
    while (q < end && (*q == '\r' || *q == '\n')) ++q;
    return q;
  };
  if (!newline && first.end < end) {
    const Next second = next_at(first.end, classes);
    if (second.kind == kLetter) return run(second.end, end, kLetter, classes);
    if (first.code == ' ' && second.kind == 0) return punctuation(second.end);
  }
  if (first.kind == 0) return punctuation(first.end);
  const char* e = run(first.end, end, kSpace, classes);
  for (const char* q = e; q > p; --q)  // \s*[\r\n]+ ends after the run's last line break
    if (q[-1] == '\r' || q[-1] == '\n') return q;
  return spaces(p, e, end);
}

}  // namespace redco
