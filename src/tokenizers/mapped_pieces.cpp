#include "tokenizers/mapped_pieces.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/load/class_tokens.h"
#include "tokenizers/load/config_tokens.h"
#include "tokenizers/sentencepiece/sentence_piece.h"
#include "tokenizers/sentencepiece/sp_pipeline.h"

namespace redco {
namespace {

using nlohmann::json;

constexpr const char* kM2M100[] = {
    "af", "am", "ar", "ast", "az", "ba",  "be", "bg", "bn", "br", "bs", "ca", "ceb", "cs", "cy", "da", "de",
    "el", "en", "es", "et",  "fa", "ff",  "fi", "fr", "fy", "ga", "gd", "gl", "gu",  "ha", "he", "hi", "hr",
    "ht", "hu", "hy", "id",  "ig", "ilo", "is", "it", "ja", "jv", "ka", "kk", "km",  "kn", "ko", "lb", "lg",
    "ln", "lo", "lt", "lv",  "mg", "mk",  "ml", "mn", "mr", "ms", "my", "ne", "nl",  "no", "ns", "oc", "or",
    "pa", "pl", "ps", "pt",  "ro", "ru",  "sd", "si", "sk", "sl", "so", "sq", "sr",  "ss", "su", "sv", "sw",
    "ta", "th", "tl", "tn",  "tr", "uk",  "ur", "uz", "vi", "wo", "xh", "yi", "yo",  "zh", "zu"};
constexpr const char* kWmt21[] = {"en", "ha", "is", "ja", "cs", "ru", "zh", "de"};

// The pieces of a sentencepiece model, looked up by their text in another vocabulary.
class MappedPieces : public TokenModel {
 public:
  // codes: whether a text may start with a language code >>fr<<, which is one token.
  MappedPieces(Vocab vocab, const SpModel& model, i32 unk, bool codes, const std::string& where)
      : TokenModel(std::move(vocab)),
        normalizer_(model, where),
        pieces_(make_sp_tokens(model, where)),
        unk_(unk),
        codes_(codes) {}

  std::unique_ptr<ModelScratch> make_scratch() const override { return pieces_->make_scratch(); }
  void encode(std::string_view text, ModelScratch& scratch, std::vector<i32>& out) const override {
    std::vector<std::string> texts;
    tokenize(text, scratch, out, texts);
  }
  void tokenize(std::string_view text, ModelScratch& scratch, std::vector<i32>& ids,
                std::vector<std::string>& tokens) const override {
    const std::size_t before = tokens.size();
    if (const auto end = text.find("<<"); codes_ && text.starts_with(">>") && end != std::string_view::npos) {
      tokens.emplace_back(text.substr(0, end + 2));
      text.remove_prefix(end + 2);
    }
    const std::string normalized = normalizer_.normalize(text);
    std::vector<i32> sp_ids;
    if (!normalized.empty()) pieces_->tokenize(normalized, scratch, sp_ids, tokens);
    for (std::size_t k = before; k < tokens.size(); ++k) {
      const i32 id = vocab().find(tokens[k]);
      ids.push_back(id >= 0 ? id : unk_);
    }
  }
  const SpTokens& pieces() const { return *pieces_; }

 private:
  SpNormalizer normalizer_;
  std::unique_ptr<SpTokens> pieces_;
  i32 unk_;
  bool codes_;
};

// Decodes the pieces between special tokens by the model. spaced: a space after each special token, and marks
// of spaces that remain become spaces.
class MappedDecoder : public Decoder {
 public:
  MappedDecoder(const SpModel& model, const SpTokens& pieces, std::set<std::string> special, bool spaced)
      : pieces_(make_sp_decoder(model, pieces)), special_(std::move(special)), spaced_(spaced) {}

  std::vector<std::string> decode(std::vector<std::string> tokens) const override {
    std::string out;
    std::vector<std::string> part;
    const auto flush = [&] {
      for (const std::string& s : pieces_->decode(std::move(part))) out += s;
      part.clear();
    };
    for (std::string& t : tokens) {
      if (!special_.contains(t)) {
        part.push_back(std::move(t));
        continue;
      }
      flush();
      out += t;
      if (spaced_) out += ' ';
    }
    flush();
    if (spaced_)
      for (std::size_t at = 0; (at = out.find(kSpaceMark, at)) != std::string::npos;) out.replace(at, 3, " ");
    const auto from = out.find_first_not_of(" \t\n\r"), to = out.find_last_not_of(" \t\n\r");
    return {from == std::string::npos ? "" : out.substr(from, to - from + 1)};
  }

 private:
  std::unique_ptr<Decoder> pieces_;
  std::set<std::string> special_;
  bool spaced_;
};

// One token for each byte; the tokens' texts are the bytes' numbers.
class ByteIds : public TokenModel {
 public:
  ByteIds(Vocab vocab, i32 first) : TokenModel(std::move(vocab)), first_(first) {}
  std::unique_ptr<ModelScratch> make_scratch() const override { return std::make_unique<ModelScratch>(); }
  void encode(std::string_view text, ModelScratch&, std::vector<i32>& out) const override {
    for (const char c : text) out.push_back(first_ + static_cast<unsigned char>(c));
  }

 private:
  i32 first_;
};

// Bytes that are not UTF-8 are dropped, as Python's errors="ignore" does.
class ByteIdDecoder : public Decoder {
 public:
  explicit ByteIdDecoder(std::set<std::string> added) : added_(std::move(added)) {}
  std::vector<std::string> decode(std::vector<std::string> tokens) const override {
    std::string bytes, out;
    for (const std::string& t : tokens) {
      const char* p = t.data();
      if (added_.contains(t))
        bytes += t;
      else
        bytes += static_cast<char>(next_code_point(p));
    }
    std::string_view rest = bytes;
    while (!rest.empty()) {
      const std::size_t bad = std::min(find_invalid_utf8(rest), rest.size());
      out += rest.substr(0, bad);
      rest.remove_prefix(std::min(rest.size(), bad + 1));
    }
    return {out};
  }

 private:
  std::set<std::string> added_;
};

// The texts of a class's special tokens, with those of the config: by role, in the order of ClassTokens.
std::map<std::string, std::string> role_texts(const std::string& tokenizer_class, const json& config,
                                              const std::string& where) {
  constexpr const char* kNames[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                    "pad_token", "cls_token", "mask_token"};
  const ClassTokens* defaults = find_class_tokens(tokenizer_class);
  std::map<std::string, std::string> out;
  for (std::size_t k = 0; k < std::size(kNames); ++k) {
    const auto it = config.find(kNames[k]);
    if (it != config.end() && it->is_null()) continue;
    const std::string text = role_text(config, kNames[k], defaults->tokens[k], where);
    if (!text.empty()) out[kNames[k]] = text;
  }
  return out;
}

std::vector<std::string> listed_tokens(const json& config, const std::string& where) {
  std::vector<std::string> out;
  for (const char* key : {"extra_special_tokens", "additional_special_tokens"}) {
    const auto it = config.find(key);
    if (it == config.end() || !it->is_array()) continue;
    for (const json& t : *it)
      out.push_back((*special_of(json{{"token", t}}, "token", where + ": " + key))["content"]);
  }
  return out;
}

}  // namespace

TokenizerParts sp_parts(const SpModel& model, const std::string& where) {
  TokenizerParts p;
  p.normalizer = std::make_unique<SpNormalizer>(model, where);
  auto tokens = make_sp_tokens(model, where);
  p.decoder = make_sp_decoder(model, *tokens);
  p.model = std::move(tokens);
  return p;
}

bool is_mapped_class(const std::string& tokenizer_class) {
  return tokenizer_class == "MarianTokenizer" || tokenizer_class == "M2M100Tokenizer";
}

TokenizerParts mapped_parts(const std::string& tokenizer_class, const SpModel& model, Vocab vocab,
                            const json& config, const std::string& language, const std::string& where) {
  const bool marian = tokenizer_class == "MarianTokenizer";
  JsonFields f(config, where);
  if (marian && f.boolean("separate_vocabs", false))
    throw ContentsError("{}: true is not supported; expected one vocabulary for both languages",
                        f.at("separate_vocabs"));
  const auto roles = role_texts(tokenizer_class, config, where);
  const auto id_of = [&](const std::string& role) {
    const auto it = roles.find(role);
    const i32 id = it == roles.end() ? -1 : vocab.find(it->second);
    if (id < 0)
      throw ContentsError("{}: the {} '{}' is not in vocab.json", where, role,
                          it == roles.end() ? "null" : it->second.substr(0, 100));
    return id;
  };
  const i32 unk = id_of("unk_token"), eos = id_of("eos_token");

  AddedTokenList list;
  std::set<std::string> special;
  json otherwise = json::object();
  for (const auto& [role, text] : roles) otherwise[role] = text;
  list.add_from(config, otherwise, where);
  for (const std::string& t : listed_tokens(config, where)) list.add(added_token(t, 0, true));

  // M2M100's language tokens follow the vocabulary.
  std::map<std::string, i32> languages;
  if (!marian) {
    const std::string set = f.text("language_codes", "m2m100");
    const bool wmt = set == "wmt21";
    if (!wmt && set != "m2m100") unknown_type(f.at("language_codes"), set, "m2m100, wmt21");
    const std::span<const char* const> codes =
        wmt ? std::span<const char* const>(kWmt21) : std::span<const char* const>(kM2M100);
    Vocab longer;
    i32 next = vocab.count();
    for (i32 id = 0; id < vocab.size(); ++id)
      if (vocab.has(id)) longer.add(vocab.token(id), id, where);
    for (const char* code : codes) {
      const std::string token = fmt::format("__{}__", code);
      if (vocab.find(token) < 0) longer.add(token, next, where);
      languages[code] = next++;
    }
    longer.finish(where, true);
    vocab = std::move(longer);
  }
  json added = list.finish(vocab);
  for (const json& t : added)
    if (t["special"]) special.insert(t["content"].get<std::string>());

  const json eos_token = {{"content", roles.at("eos_token")}, {"id", eos}};
  const json a = sequence_part("A", 0), b = sequence_part("B", 0), s = special_part(eos_token, 0);
  TokenizerParts p;
  if (marian) {
    p.post = template_of({a, s}, {a, b, s}, {eos_token});
  } else {
    const std::string code = language.empty() ? "en" : language;
    const auto it = languages.find(code);
    if (it == languages.end())
      throw ContentsError("{}: unknown language code '{}'; expected one such as en, fr, zh", where,
                          code.substr(0, 100));
    const json token = {{"content", fmt::format("__{}__", code)}, {"id", it->second}};
    const json l = special_part(token, 0);
    p.post = template_of({l, a, s}, {l, a, b, s}, {token, eos_token});
  }
  auto tokens = std::make_unique<MappedPieces>(std::move(vocab), model, unk, marian, where);
  p.decoder = std::make_unique<MappedDecoder>(model, tokens->pieces(), std::move(special), marian);
  p.model = std::move(tokens);
  p.added = std::move(added);
  return p;
}

TokenizerParts byt5_parts(const json& config, const std::string& where) {
  const auto roles = role_texts("ByT5Tokenizer", config, where);
  JsonFields f(config, where);
  const i64 extra = f.integer("extra_ids", 125);
  if (extra < 0 || extra > 100'000)
    throw ContentsError("{}: {} is outside of 0..100000", f.at("extra_ids"), extra);
  TokenizerParts p;
  Vocab vocab;
  p.added = json::array();
  std::set<std::string> texts;
  for (const char* role : {"pad_token", "eos_token", "unk_token"}) {
    const auto it = roles.find(role);
    if (it == roles.end()) throw ContentsError("{}: {} is null; expected a token", where, role);
    json token = added_token(it->second, vocab.count(), true);
    if (const auto own = config.find(role); own == config.end() || own->is_string())
      token["lstrip"] = token["rstrip"] = true;
    else
      token = *special_of(config, role, where);
    token["id"] = vocab.count();
    vocab.add(it->second, vocab.count(), where);
    texts.insert(it->second);
    p.added.push_back(std::move(token));
  }
  for (unsigned byte = 0; byte < 256; ++byte) {
    std::string text;
    append_utf8(byte, text);
    vocab.add(text, vocab.count(), where);
  }
  std::vector<std::string> listed = listed_tokens(config, where);
  if (listed.empty())
    for (i64 k = 0; k < extra; ++k) listed.push_back(fmt::format("<extra_id_{}>", k));
  for (const std::string& t : listed) {
    if (!texts.insert(t).second) continue;
    p.added.push_back(added_token(t, vocab.count(), true));
    vocab.add(t, vocab.count(), where);
  }
  vocab.finish(where);
  const json& eos = p.added[1];
  const json a = sequence_part("A", 0), b = sequence_part("B", 0), s = special_part(eos, 0);
  p.post = template_of({a, s}, {a, s, b, s}, {eos});
  p.end_once = 1;
  p.model = std::make_unique<ByteIds>(std::move(vocab), 3);
  p.decoder = std::make_unique<ByteIdDecoder>(std::move(texts));
  return p;
}

}  // namespace redco
