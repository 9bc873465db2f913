// Pre-tokenizers: the second stage of a tokenizer, which splits a text into pieces. The model encodes each
// piece separately.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/types.h"

namespace redco {

// A reference to a callable, valid during one call.
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

// Immutable and thread-safe.
class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;

  // Calls sink(piece) for each piece of `text` in order. A piece is valid until the sink returns, and never
  // empty. REQUIRES valid UTF-8, unless takes_any_bytes().
  virtual void split(std::string_view text, const PieceSink& sink) const = 0;

  // The same; first: whether `text` is at the start of the whole text.
  virtual void split_at(std::string_view text, bool /*first*/, const PieceSink& sink) const {
    split(text, sink);
  }

  // Whether split_at() depends on `first`.
  virtual bool looks_at_front() const { return false; }

  // CutKinds (normalizers.h): where a text may be split so that the halves have the same pieces as the whole.
  virtual unsigned cuts() const { return 0; }
  // The CutKinds of an earlier step that this step preserves.
  virtual unsigned keeps_cuts() const { return ~0u; }

  // Whether any bytes are accepted: no step inspects characters.
  virtual bool takes_any_bytes() const { return false; }

  // Whether the last step is ByteLevel. The pieces are then raw bytes, which the model maps, unless it was
  // made with `map_bytes`.
  virtual bool byte_level() const { return false; }
};

// Makes the `pre_tokenizer` of a tokenizer.json; errors start with `where`. All types of Hugging Face's
// tokenizers 0.23 are supported: ByteLevel, Metaspace, Split, Digits, Whitespace, WhitespaceSplit,
// BertPreTokenizer, Punctuation, CharDelimiterSplit, UnicodeScripts, FixedLength and Sequence. Anything else
// is a ContentsError. nullptr for a JSON null. map_bytes: ByteLevel returns pieces in the byte alphabet, for
// models that don't accept raw bytes.
std::unique_ptr<PreTokenizer> make_pre_tokenizer(const nlohmann::json& value, const std::string& where,
                                                 bool map_bytes);

// Whether the last step of `value` is ByteLevel. The model needs to know this first.
bool ends_in_byte_level(const nlohmann::json& value);

}  // namespace redco
