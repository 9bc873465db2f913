#include "tokenizers/pre_tokenizers/word_pre_tokenizers.h"

#include <array>
#include <cstring>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/normalizers/normalizers.h"
#include "unicode/char_class.h"
#include "unicode/hf_chars.h"

namespace redco {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

// Splits a text wherever the kind of its characters changes. Kind: unsigned operator()(char32_t). kDrop drops
// the characters; kAlone makes each character one piece.
template <class Kind>
class KindSplitter : public PreTokenizer {
 public:
  static constexpr unsigned kDrop = 0, kAlone = 1;
  void split(std::string_view text, const PieceSink& sink) const override {
    const Kind kind;
    const char* end = text.data() + text.size();
    const char* begin = text.data();  // start of the piece
    unsigned now = kDrop;             // its kind
    for (const char* p = begin; p < end;) {
      const char* start = p;
      const unsigned k = kind(next_code_point(p));
      if (k == now && k != kAlone) continue;
      if (now != kDrop) sink(between(begin, start));
      begin = start;
      now = k;
    }
    if (now != kDrop) sink(between(begin, end));
  }
  unsigned cuts() const override { return kCutBoth; }  // white space is always dropped
};

struct SpaceOrNot {
  const std::uint8_t* classes = char_classes();
  unsigned operator()(char32_t c) const { return classes[c] & kSpace ? 0 : 2; }
};

struct WordOrOther {
  const std::uint8_t *spaces = char_classes(), *words = hf_classes();
  unsigned operator()(char32_t c) const { return spaces[c] & kSpace ? 0 : words[c] & kHfWord ? 2 : 3; }
};

struct BertKind {
  const std::uint8_t *spaces = char_classes(), *others = hf_classes();
  unsigned operator()(char32_t c) const {
    return spaces[c] & kSpace ? 0 : others[c] & kHfPunctuation ? 1 : 2;
  }
};

class UnicodeScripts : public PreTokenizer {
 public:
  void split(std::string_view text, const PieceSink& sink) const override {
    const char* end = text.data() + text.size();
    const char* begin = nullptr;
    int now = 0;
    for (const char* p = text.data(); p < end;) {
      const char* start = p;
      const int script = script_of(next_code_point(p));
      if (script == 0 || script == now) continue;
      if (begin != nullptr) sink(between(begin, start));
      begin = start;
      now = script;
    }
    if (begin != nullptr) sink(between(begin, end));
  }
};

class FixedLength : public PreTokenizer {
 public:
  explicit FixedLength(i64 n) : n_(n) {}
  void split(std::string_view text, const PieceSink& sink) const override {
    const char* end = text.data() + text.size();
    for (const char* p = text.data(); p < end;) {
      const char* begin = p;
      for (i64 k = 0; k < n_ && p < end; ++k) next_code_point(p);
      sink(between(begin, p));
    }
  }

 private:
  i64 n_;
};

class Metaspace : public PreTokenizer {
 public:
  explicit Metaspace(MetaspaceOptions o) : mark_(std::move(o.mark)), scheme_(o.scheme), split_(o.split) {}
  void split(std::string_view text, const PieceSink& sink) const override { split_at(text, true, sink); }
  void split_at(std::string_view text, bool first, const PieceSink& sink) const override {
    if (text.empty()) return;
    const bool prepend = (scheme_ == PrependScheme::always || (scheme_ == PrependScheme::first && first)) &&
                         text[0] != ' ' && !text.starts_with(mark_);
    // Small pieces are assembled without an allocation.
    std::array<char, 256> small;
    std::string large;
    std::string_view marked;
    if (mark_.size() * (text.size() + 1) <= small.size()) {
      char* out = small.data();
      auto put_mark = [&] {
        std::memcpy(out, mark_.data(), mark_.size());
        out += mark_.size();
      };
      if (prepend) put_mark();
      for (char c : text) c == ' ' ? put_mark() : static_cast<void>(*out++ = c);
      marked = between(small.data(), out);
    } else {
      large.reserve(text.size() + text.size() / 4 + mark_.size());
      if (prepend) large += mark_;
      for (char c : text) c == ' ' ? static_cast<void>(large += mark_) : large.push_back(c);
      marked = large;
    }
    if (!split_) {
      sink(marked);
      return;
    }
    std::size_t begin = 0;
    while (begin < marked.size()) {
      const std::size_t end = std::min(marked.find(mark_, begin + 1), marked.size());
      sink(marked.substr(begin, end - begin));
      begin = end;
    }
  }
  // A half that starts with a space needs no mark; one that starts with a line break may need it.
  unsigned cuts() const override { return split_ ? kCutSpaces : kNoCuts; }
  bool looks_at_front() const override { return scheme_ == PrependScheme::first; }
  unsigned keeps_cuts() const override { return scheme_ == PrependScheme::first ? kCutSpaces : kCutBoth; }

 private:
  std::string mark_;
  PrependScheme scheme_;
  bool split_;
};

}  // namespace

std::unique_ptr<PreTokenizer> make_whitespace_split() { return std::make_unique<KindSplitter<SpaceOrNot>>(); }
std::unique_ptr<PreTokenizer> make_whitespace() { return std::make_unique<KindSplitter<WordOrOther>>(); }
std::unique_ptr<PreTokenizer> make_bert_pre_tokenizer() { return std::make_unique<KindSplitter<BertKind>>(); }
std::unique_ptr<PreTokenizer> make_unicode_scripts() { return std::make_unique<UnicodeScripts>(); }
std::unique_ptr<PreTokenizer> make_fixed_length(i64 n) { return std::make_unique<FixedLength>(n); }
std::unique_ptr<PreTokenizer> make_metaspace(MetaspaceOptions o) {
  return std::make_unique<Metaspace>(std::move(o));
}

MetaspaceOptions read_metaspace(JsonFields& f) {
  MetaspaceOptions o;
  o.mark = f.character("replacement");
  const std::string scheme = f.text("prepend_scheme", "always");
  if (scheme == "first")
    o.scheme = PrependScheme::first;
  else if (scheme == "never")
    o.scheme = PrependScheme::never;
  else if (scheme != "always")
    unknown_type(f.at("prepend_scheme"), scheme, "always, first, never");
  if (!f.boolean("add_prefix_space", true)) {  // old files
    if (f.find("prepend_scheme") != nullptr && o.scheme != PrependScheme::never)
      throw ContentsError("{}: false contradicts prepend_scheme '{}'; use 'never'", f.at("add_prefix_space"),
                          scheme);
    o.scheme = PrependScheme::never;
  }
  f.inert({"str_rep"});
  o.split = f.boolean("split", true);
  return o;
}

}  // namespace redco
