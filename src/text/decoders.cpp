#include "text/decoders.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "text/byte_level.h"
#include "text/json_fields.h"
#include "text/regex.h"
#include "text/utf8.h"

namespace redco {
namespace {

using Strings = std::vector<std::string>;

class ByteLevelDecoder : public Decoder {
 public:
  Strings decode(Strings tokens) const override {
    std::string bytes;
    for (const std::string& t : tokens)
      if (!append_bytes_of(t, bytes)) bytes += t;  // a token from outside the byte alphabet stands for itself
    return {utf8_lossy(bytes)};
  }
};

class ReplaceDecoder : public Decoder {
 public:
  ReplaceDecoder(const std::string& pattern, const std::string& where, std::string content)
      : regex_(pattern, where), content_(std::move(content)) {}
  Strings decode(Strings tokens) const override {
    for (std::string& t : tokens) {
      std::string out;
      std::size_t done = 0;
      for (const auto& [begin, end] : regex_.find_all(t)) {
        out.append(t, done, begin - done);
        out += content_;
        done = end;
      }
      out.append(t, done);
      t = std::move(out);
    }
    return tokens;
  }

 private:
  Regex regex_;
  std::string content_;
};

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
        out.insert(out.end(), bytes.size(), "\xEF\xBF\xBD");  // one per byte, as Hugging Face has it
      bytes.clear();
    };
    for (std::string& t : tokens) {
      unsigned byte = 0;
      if (t.size() == 6 && t.starts_with("<0x") && t.ends_with('>') &&
          std::from_chars(t.data() + 3, t.data() + 5, byte, 16).ptr == t.data() + 5) {
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
    JsonFields pattern(f.need("pattern"), f.at("pattern"));
    const bool is_regex = pattern.find("Regex") != nullptr;
    const std::string text = pattern.text(is_regex ? "Regex" : "String");
    pattern.finish();
    made = std::make_unique<ReplaceDecoder>(is_regex ? text : escape_regex(text), pattern.where(),
                                            f.text("content"));
  } else if (type == "ByteFallback") {
    made = std::make_unique<ByteFallbackDecoder>();
  } else if (type == "Fuse") {
    made = std::make_unique<FuseDecoder>();
  } else if (type == "Strip") {
    const std::string c = f.text("content");
    const char* p = c.data();
    if (c.empty() || (next_code_point(p), p != c.data() + c.size()))
      throw ContentsError("{}: '{}' is not one character", f.at("content"), c.substr(0, 100));
    const i64 start = f.integer("start"), stop = f.integer("stop");
    made = std::make_unique<StripDecoder>(c, start, stop);
  } else if (type == "Sequence") {
    std::vector<std::unique_ptr<Decoder>> parts;
    const auto& list = f.array("decoders");
    for (std::size_t k = 0; k < list.size(); ++k)
      if (auto p = make_decoder(list[k], fmt::format("{}[{}]", f.at("decoders"), k)))
        parts.push_back(std::move(p));
    made = std::make_unique<DecoderSequence>(std::move(parts));
  } else {
    unknown_type(where, type, "ByteLevel, Replace, ByteFallback, Fuse, Strip, Sequence");
  }
  f.finish();
  return made;
}

}  // namespace redco
