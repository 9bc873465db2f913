// The second stage of a tokenizer: text to the pieces that the model sees one by one.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/types.h"

namespace redco {

// A callable by reference, for the duration of one call.
class PieceSink {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, PieceSink>)
      PieceSink(F&& f)  // NOLINT: implicit on purpose
      : object_(const_cast<void*>(static_cast<const void*>(&f))), call_([](void* o, std::string_view piece) {
          (*static_cast<std::remove_reference_t<F>*>(o))(piece);
        }) {}
  void operator()(std::string_view piece) const { call_(object_, piece); }

 private:
  void* object_;
  void (*call_)(void*, std::string_view);
};

// Const and thread-safe.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  // Hands over each piece of `text` in order; a piece lives until the sink returns. Empty pieces are never
  // made. REQUIRES valid UTF-8, unless takes_any_bytes().
  virtual void split(std::string_view text, const PieceSink& sink) const = 0;

  // The same for text of which is known whether it starts the whole text.
  virtual void split_at(std::string_view text, bool /*first*/, const PieceSink& sink) const {
    split(text, sink);
  }

  // Whether split_at() and split() differ.
  virtual bool looks_at_front() const { return false; }

  // Where text may be cut before the halves are split by themselves: CutKinds of normalizers.h.
  virtual unsigned cuts() const { return 0; }
  // Which of the cuts made by a step before it remain so.
  virtual unsigned keeps_cuts() const { return ~0u; }

  // True where no step looks at characters.
  virtual bool takes_any_bytes() const { return false; }

  // True where the last step is ByteLevel: the pieces then are raw bytes that the model maps, unless
  // `map_bytes` was set when it was made.
  virtual bool byte_level() const { return false; }
};

// The `pre_tokenizer` of a tokenizer.json; `where` is in front of errors. Every type of Hugging Face's
// tokenizers 0.23: ByteLevel, Metaspace, Split, Digits, Whitespace, WhitespaceSplit, BertPreTokenizer,
// Punctuation, CharDelimiterSplit, UnicodeScripts, FixedLength and Sequence; anything else is a
// ContentsError. Null for a JSON null. map_bytes: ByteLevel gives pieces in the byte alphabet, for models
// that don't map it themselves.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const nlohmann::json& value, const std::string& where,
                                                 bool map_bytes);

// Whether `value`'s last step is ByteLevel (what the model must know before it is made).
bool ends_in_byte_level(const nlohmann::json& value);

}  // namespace redco
