#include "tokenizers/pre_tokenizers/pre_tokenizers.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/normalizers/normalizers.h"
#include "tokenizers/pre_tokenizers/byte_level.h"
#include "tokenizers/pre_tokenizers/split_behavior.h"
#include "tokenizers/pre_tokenizers/word_pre_tokenizers.h"
#include "tokenizers/pre_tokenizers/word_splits.h"
#include "unicode/char_class.h"
#include "unicode/hf_chars.h"
#include "unicode/regex.h"

namespace redco {
namespace {

std::string_view part(std::string_view text, std::size_t begin, std::size_t end) {
  return text.substr(begin, end - begin);
}

void emit(std::string_view text, const std::vector<Span>& spans, SplitBehavior behavior,
          const PieceSink& sink) {
  for (const auto& [begin, end] : pieces_of(behavior, spans))
    if (begin != end) sink(part(text, begin, end));
}

// Splits by one of the patterns of word_splits.h, without a regular expression.
class WordSplitter : public PreTokenizer {
 public:
  explicit WordSplitter(WordSplit kind) : kind_(kind), classes_(char_classes()) {}
  void split(std::string_view text, const PieceSink& sink) const override {
    split_words(kind_, text, classes_, sink);
  }
  unsigned cuts() const override {
    return kCutBoth;
  }  // a run of letters or digits ends at a space, whatever follows

 private:
  WordSplit kind_;
  const unsigned char* classes_;
};

class RegexSplitter : public PreTokenizer {
 public:
  RegexSplitter(const std::string& pattern, const std::string& where, SplitBehavior behavior, bool invert)
      : regex_(pattern, where), behavior_(behavior), invert_(invert) {}
  void split(std::string_view text, const PieceSink& sink) const override {
    if (!text.empty()) emit(text, spans_of(regex_.find_all(text), text.size(), invert_), behavior_, sink);
  }

 private:
  Regex regex_;
  SplitBehavior behavior_;
  bool invert_;
};

// Splits at single characters of one kind.
class CharacterSplitter : public PreTokenizer {
 public:
  using Test = bool (*)(char32_t c, char32_t argument);
  CharacterSplitter(Test test, char32_t argument, SplitBehavior behavior)
      : test_(test), argument_(argument), behavior_(behavior) {}
  void split(std::string_view text, const PieceSink& sink) const override {
    std::vector<std::pair<std::size_t, std::size_t>> matches;
    const char* begin = text.data();
    for (const char *p = begin, *end = p + text.size(); p < end;) {
      const char* start = p;
      if (test_(next_code_point(p), argument_))
        matches.emplace_back(static_cast<std::size_t>(start - begin), static_cast<std::size_t>(p - begin));
    }
    emit(text, spans_of(matches, text.size(), false), behavior_, sink);
  }

 private:
  Test test_;
  char32_t argument_;
  SplitBehavior behavior_;
};

bool is_number(char32_t c, char32_t) { return hf_classes()[c] & kHfNumeric; }
bool is_same(char32_t c, char32_t d) { return c == d; }
bool is_punctuation(char32_t c, char32_t) { return hf_classes()[c] & kHfPunctuation; }

class ByteLevel : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex, bool map)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex), map_(map), classes_(char_classes()) {}
  void split(std::string_view text, const PieceSink& sink) const override {
    std::string prefixed;
    if (add_prefix_space_ && !text.starts_with(' ')) {
      prefixed.reserve(text.size() + 1);
      prefixed = ' ';
      prefixed += text;
      text = prefixed;
    }
    if (map_) {
      std::string mapped;
      auto out = [&](std::string_view piece) {
        mapped.clear();
        append_byte_level(piece, mapped);
        sink(mapped);
      };
      use_regex_ ? split_words(WordSplit::gpt2, text, classes_, out) : out(text);
    } else {
      use_regex_ ? split_words(WordSplit::gpt2, text, classes_, sink) : sink(text);
    }
  }
  unsigned cuts() const override { return use_regex_ && !add_prefix_space_ ? kCutBoth : kNoCuts; }
  bool takes_any_bytes() const override { return !use_regex_; }
  bool byte_level() const override { return true; }

 private:
  bool add_prefix_space_, use_regex_, map_;
  const unsigned char* classes_;
};

class PreTokenizerSequence : public PreTokenizer {
 public:
  explicit PreTokenizerSequence(std::vector<std::unique_ptr<PreTokenizer>> parts)
      : parts_(std::move(parts)) {}
  void split(std::string_view text, const PieceSink& sink) const override { step(0, text, true, sink); }
  void split_at(std::string_view text, bool first, const PieceSink& sink) const override {
    step(0, text, first, sink);
  }
  bool looks_at_front() const override {
    return std::any_of(parts_.begin(), parts_.end(), [](const auto& p) { return p->looks_at_front(); });
  }
  // A cut of the first step stays valid if the other steps preserve it: the first step's pieces end there.
  unsigned cuts() const override {
    unsigned kinds = parts_.empty() ? kNoCuts : parts_.front()->cuts();
    for (const auto& p : parts_) kinds &= p->keeps_cuts();
    return kinds;
  }
  bool takes_any_bytes() const override {
    for (const auto& p : parts_)
      if (!p->takes_any_bytes()) return false;
    return true;
  }
  bool byte_level() const override { return !parts_.empty() && parts_.back()->byte_level(); }

 private:
  void step(std::size_t k, std::string_view text, bool first, const PieceSink& sink) const {
    if (k == parts_.size()) {
      sink(text);
      return;
    }
    if (k + 1 == parts_.size()) {
      parts_[k]->split_at(text, first, sink);
      return;
    }
    bool none_before = true;
    parts_[k]->split_at(text, first, [&](std::string_view piece) {
      // The first piece may start after text that the step dropped. A piece in the step's own buffer doesn't:
      // the step prepended something.
      const bool inside = piece.data() >= text.data() && piece.data() <= text.data() + text.size();
      step(k + 1, piece, first && (inside ? piece.data() == text.data() : none_before), sink);
      none_before = false;
    });
  }
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

std::unique_ptr<PreTokenizer> make_split(JsonFields& f) {
  const auto behavior = parse_split_behavior(f.text("behavior"), f.at("behavior"));
  const bool invert = f.boolean("invert", false);
  JsonFields pattern(f.need("pattern"), f.at("pattern"));
  const bool is_regex = pattern.find("Regex") != nullptr;
  const std::string text = pattern.text(is_regex ? "Regex" : "String");
  pattern.finish();
  const bool plain = behavior == SplitBehavior::isolated || (behavior == SplitBehavior::removed && invert);
  // The known patterns match every character, so 'isolated' and 'removed with invert' give the same pieces.
  if (const auto known = known_pattern(text); known && is_regex && plain)
    return std::make_unique<WordSplitter>(*known);
  return std::make_unique<RegexSplitter>(is_regex ? text : escape_regex(text), pattern.where(), behavior,
                                         invert);
}

std::unique_ptr<PreTokenizer> make(const nlohmann::json& value, const std::string& where, bool map_bytes,
                                   bool last) {
  if (value.is_null()) return nullptr;
  JsonFields f(value, where);
  const std::string type = f.text("type");
  std::unique_ptr<PreTokenizer> made;
  if (type == "ByteLevel") {
    f.inert({"trim_offsets"});
    const bool prefix = f.boolean("add_prefix_space"), use_regex = f.boolean("use_regex", true);
    made = std::make_unique<ByteLevel>(prefix, use_regex, map_bytes || !last);
  } else if (type == "Split") {
    made = make_split(f);
  } else if (type == "Digits") {
    made = std::make_unique<CharacterSplitter>(
        is_number, 0, f.boolean("individual_digits") ? SplitBehavior::isolated : SplitBehavior::contiguous);
  } else if (type == "Whitespace") {
    made = make_whitespace();
  } else if (type == "WhitespaceSplit") {
    made = make_whitespace_split();
  } else if (type == "BertPreTokenizer") {
    made = make_bert_pre_tokenizer();
  } else if (type == "UnicodeScripts") {
    made = make_unicode_scripts();
  } else if (type == "FixedLength") {
    const i64 length = f.integer("length", 5);
    if (length < 1) throw ContentsError("{}: found {}, expected 1 or more", f.at("length"), length);
    made = make_fixed_length(length);
  } else if (type == "Metaspace") {
    made = make_metaspace(read_metaspace(f));
  } else if (type == "Punctuation") {
    const auto behavior = parse_split_behavior(f.text("behavior", "Isolated"), f.at("behavior"));
    made = std::make_unique<CharacterSplitter>(is_punctuation, 0, behavior);
  } else if (type == "CharDelimiterSplit") {
    const std::string delimiter = f.character("delimiter");
    const char* p = delimiter.data();
    made = std::make_unique<CharacterSplitter>(is_same, next_code_point(p), SplitBehavior::removed);
  } else if (type == "Sequence") {
    std::vector<std::unique_ptr<PreTokenizer>> parts;
    const auto& list = f.array("pretokenizers");
    for (std::size_t k = 0; k < list.size(); ++k)
      if (auto p = make(list[k], fmt::format("{}[{}]", f.at("pretokenizers"), k), map_bytes,
                        last && k + 1 == list.size()))
        parts.push_back(std::move(p));
    made = std::make_unique<PreTokenizerSequence>(std::move(parts));
  } else {
    unknown_type(
        where, type,
        "ByteLevel, Metaspace, Split, Digits, Whitespace, WhitespaceSplit, BertPreTokenizer, Punctuation, "
        "CharDelimiterSplit, UnicodeScripts, FixedLength, Sequence");
  }
  f.finish();
  return made;
}

}  // namespace

std::unique_ptr<PreTokenizer> make_pre_tokenizer(const nlohmann::json& value, const std::string& where,
                                                 bool map_bytes) {
  return make(value, where, map_bytes, true);
}

bool ends_in_byte_level(const nlohmann::json& value) {
  if (!value.is_object()) return false;
  const auto type = value.find("type");
  if (type == value.end() || !type->is_string()) return false;
  if (*type == "ByteLevel") return true;
  const auto list = value.find("pretokenizers");
  return *type == "Sequence" && list != value.end() && list->is_array() && !list->empty() &&
         ends_in_byte_level(list->back());
}

}  // namespace redco
