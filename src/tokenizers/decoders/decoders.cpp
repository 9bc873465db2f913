#include "tokenizers/decoders/decoders.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/normalizers/replacement.h"
#include "tokenizers/pre_tokenizers/byte_level.h"
#include "tokenizers/pre_tokenizers/word_pre_tokenizers.h"

namespace redco {
namespace {

using Strings = std::vector<std::string>;

class ByteLevelDecoder : public Decoder {
 public:
  Strings decode(Strings tokens) const override {
    std::string bytes;
    for (const std::string& t : tokens)
      if (!append_bytes_of(t, bytes)) bytes += t;  // a token that is not in the byte alphabet is kept
    return {utf8_lossy(bytes)};
  }
};

class ReplaceDecoder : public Decoder {
 public:
  explicit ReplaceDecoder(Replacement what) : what_(std::move(what)) {}
  Strings decode(Strings tokens) const override {
    for (std::string& t : tokens)
      if (!what_.unchanged(t)) t = what_.apply(t);
    return tokens;
  }

 private:
  Replacement what_;
};

// The byte of a token <0x41>, or -1. Rust's number parser allows a plus sign.
int fallback_byte(const std::string& token) {
  if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
  auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  const int high = token[3] == '+' ? 0 : digit(token[3]), low = digit(token[4]);
  return high < 0 || low < 0 ? -1 : 16 * high + low;
}

class ByteFallbackDecoder : public Decoder {
 public:
  Strings decode(Strings tokens) const override {
    Strings out;
    std::string bytes;
    auto flush = [&] {
      if (bytes.empty()) return;
      if (find_invalid_utf8(bytes) == std::string::npos)
        out.push_back(bytes);
      else
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");  // one per byte, as in Hugging Face
      bytes.clear();
    };
    for (std::string& t : tokens) {
      if (const int byte = fallback_byte(t); byte >= 0) {
        bytes += static_cast<char>(byte);
      } else {
        flush();
        out.push_back(std::move(t));
      }
    }
    flush();
    return out;
  }
};

class FuseDecoder : public Decoder {
 public:
  Strings decode(Strings tokens) const override {
    std::string all;
    for (const std::string& t : tokens) all += t;
    return {all};
  }
};

class StripDecoder : public Decoder {
 public:
  StripDecoder(std::string character, i64 start, i64 stop)
      : character_(std::move(character)), start_(start), stop_(stop) {}
  Strings decode(Strings tokens) const override {
    const std::size_t n = character_.size();
    for (std::string& t : tokens) {
      std::size_t from = 0, to = t.size();
      for (i64 k = 0; k < start_ && t.compare(from, n, character_) == 0 && from < t.size(); ++k) from += n;
      for (i64 k = 0; k < stop_ && to >= from + n && t.compare(to - n, n, character_) == 0; ++k) to -= n;
      t = t.substr(from, to - from);
    }
    return tokens;
  }

 private:
  std::string character_;
  i64 start_, stop_;
};

// BERT's clean-up: removes spaces around English punctuation.
std::string cleaned_up(std::string t) {
  static constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},   {" ?", "?"},           {" !", "!"},   {" ,", ","},     {" ' ", "'"},   {" n't", "n't"},
      {" 'm", "'m"}, {" do not", " don't"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules)
    if (t.find(from) != std::string::npos) t = replace_all(t, from, to);
  return t;
}

class WordPieceDecoder : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup) : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  Strings decode(Strings tokens) const override {
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      std::string& t = tokens[k];
      if (k > 0) {
        if (t.starts_with(prefix_))
          t.erase(0, prefix_.size());
        else
          t.insert(0, 1, ' ');
      }
      if (cleanup_) t = cleaned_up(std::move(t));
    }
    return tokens;
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class MetaspaceDecoder : public Decoder {
 public:
  MetaspaceDecoder(std::string mark, PrependScheme scheme) : mark_(std::move(mark)), scheme_(scheme) {}
  Strings decode(Strings tokens) const override {
    for (std::size_t k = 0; k < tokens.size(); ++k)
      tokens[k] = replace_all(tokens[k], mark_, k == 0 && scheme_ != PrependScheme::never ? "" : " ");
    return tokens;
  }

 private:
  std::string mark_;
  PrependScheme scheme_;
};

class BpeDecoder : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  Strings decode(Strings tokens) const override {
    for (std::size_t k = 0; k < tokens.size(); ++k)
      tokens[k] = replace_all(tokens[k], suffix_, k + 1 == tokens.size() ? "" : " ");
    return tokens;
  }

 private:
  std::string suffix_;
};

class CtcDecoder : public Decoder {
 public:
  CtcDecoder(std::string pad, std::string delimiter, bool cleanup)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  Strings decode(Strings tokens) const override {
    tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
    for (std::string& t : tokens) {
      t = replace_all(t, pad_, "");
      if (cleanup_) t = replace_all(cleaned_up(std::move(t)), delimiter_, " ");
    }
    std::erase(tokens, "");
    return tokens;
  }

 private:
  std::string pad_, delimiter_;
  bool cleanup_;
};

class DecoderSequence : public Decoder {
 public:
  explicit DecoderSequence(std::vector<std::unique_ptr<Decoder>> parts) : parts_(std::move(parts)) {}
  Strings decode(Strings tokens) const override {
    for (const auto& p : parts_) tokens = p->decode(std::move(tokens));
    return tokens;
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

}  // namespace

std::unique_ptr<Decoder> make_decoder(const nlohmann::json& value, const std::string& where) {
  if (value.is_null()) return nullptr;
  JsonFields f(value, where);
  const std::string type = f.text("type");
  std::unique_ptr<Decoder> made;
  if (type == "ByteLevel") {
    f.inert({"add_prefix_space", "trim_offsets", "use_regex"});
    made = std::make_unique<ByteLevelDecoder>();
  } else if (type == "Replace") {
    made = std::make_unique<ReplaceDecoder>(Replacement(f));
  } else if (type == "ByteFallback") {
    made = std::make_unique<ByteFallbackDecoder>();
  } else if (type == "Fuse") {
    made = std::make_unique<FuseDecoder>();
  } else if (type == "Strip") {
    const std::string c = f.character("content");
    const i64 start = f.integer("start"), stop = f.integer("stop");
    made = std::make_unique<StripDecoder>(c, start, stop);
  } else if (type == "WordPiece") {
    const std::string prefix = f.text("prefix");
    made = std::make_unique<WordPieceDecoder>(prefix, f.boolean("cleanup"));
  } else if (type == "Metaspace") {
    const auto [mark, scheme, split] = read_metaspace(f);
    made = std::make_unique<MetaspaceDecoder>(mark, scheme);
  } else if (type == "BPEDecoder") {
    made = std::make_unique<BpeDecoder>(f.text("suffix"));
  } else if (type == "CTC") {
    const std::string pad = f.text("pad_token"), delimiter = f.text("word_delimiter_token");
    made = std::make_unique<CtcDecoder>(pad, delimiter, f.boolean("cleanup"));
  } else if (type == "Sequence") {
    std::vector<std::unique_ptr<Decoder>> parts;
    const auto& list = f.array("decoders");
    for (std::size_t k = 0; k < list.size(); ++k)
      if (auto p = make_decoder(list[k], fmt::format("{}[{}]", f.at("decoders"), k)))
        parts.push_back(std::move(p));
    made = std::make_unique<DecoderSequence>(std::move(parts));
  } else {
    unknown_type(
        where, type,
        "ByteLevel, WordPiece, Metaspace, BPEDecoder, CTC, Replace, ByteFallback, Fuse, Strip, Sequence");
  }
  f.finish();
  return made;
}

}  // namespace redco
