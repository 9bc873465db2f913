#include "gguf/folder_tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"
#include "base/words.h"

namespace redco::gguf {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSpaceMark = "\xE2\x96\x81";  // U+2581
// Kinds of tokens (tokenizer.ggml.token_type).
enum Kind : i64 { normal = 1, unknown = 2, control = 3, user_defined = 4, unused = 5, byte = 6 };

class Source {
 public:
  explicit Source(const Header& header) : h(header) {
    const auto* list = h.texts("tokenizer.ggml.tokens");
    if (!list) throw ContentsError("{}: the key tokenizer.ggml.tokens is missing", h.path);
    tokens = *list;
    for (std::size_t i = 0; i < tokens.size(); ++i)
      if (find_invalid_utf8(tokens[i]) != std::string_view::npos)
        throw ContentsError("{}: token {} is not UTF-8", h.path, i);
    kinds = h.integers("tokenizer.ggml.token_type").value_or(std::vector<i64>(tokens.size(), Kind::normal));
    if (kinds.size() != tokens.size())
      throw ContentsError("{}: {} tokens and {} token types, expected the same number", h.path, tokens.size(),
                          kinds.size());
  }

  const Header& h;
  std::vector<std::string> tokens;
  std::vector<i64> kinds;

  std::optional<i64> id(const std::string& role) const {
    const auto v = h.integer("tokenizer.ggml." + role + "_token_id");
    // llama.cpp's converters write 2^32 - 1 for 'none'.
    if (!v || *v == 0xFFFFFFFF || *v == -1) return std::nullopt;
    if (*v < 0 || *v >= static_cast<i64>(tokens.size()))
      throw ContentsError("{}: the {} token has the id {}, outside of the vocabulary of {}", h.path, role, *v,
                          tokens.size());
    return v;
  }
  bool flag(const std::string& key, bool otherwise) const {
    return h.boolean("tokenizer.ggml." + key).value_or(otherwise);
  }
};

Json added_tokens(const Source& s) {
  Json out = Json::array();
  for (std::size_t i = 0; i < s.tokens.size(); ++i) {
    const bool special = s.kinds[i] == Kind::control || s.kinds[i] == Kind::unknown;
    if (!special && s.kinds[i] != Kind::user_defined) continue;
    out.push_back({{"id", i},
                   {"content", s.tokens[i]},
                   {"single_word", false},
                   {"lstrip", false},
                   {"rstrip", false},
                   {"normalized", false},
                   {"special", special}});
  }
  return out;
}

// Adds tokens around the ids of one text or of a pair. Each is an id or nullopt.
Json surrounding(const Source& s, std::optional<i64> first, std::optional<i64> last) {
  Json single = Json::array(), pair = Json::array(), table = Json::object();
  const auto special = [&](Json& to, std::optional<i64> id, int type) {
    if (!id) return;
    const std::string& text = s.tokens[static_cast<std::size_t>(*id)];
    table[text] = {{"id", text}, {"ids", {*id}}, {"tokens", {text}}};
    to.push_back({{"SpecialToken", {{"id", text}, {"type_id", type}}}});
  };
  const auto sequence = [](Json& to, const char* name, int type) {
    to.push_back({{"Sequence", {{"id", name}, {"type_id", type}}}});
  };
  special(single, first, 0);
  sequence(single, "A", 0);
  special(single, last, 0);
  special(pair, first, 0);
  sequence(pair, "A", 0);
  special(pair, last, 0);
  sequence(pair, "B", 1);
  special(pair, last, 1);
  return {{"type", "TemplateProcessing"}, {"single", single}, {"pair", pair}, {"special_tokens", table}};
}

Json bos_and_eos(const Source& s, bool bos_by_default) {
  const bool bos = s.flag("add_bos_token", bos_by_default), eos = s.flag("add_eos_token", false);
  const auto of = [&](bool wanted, const char* role) {
    const auto id = wanted ? s.id(role) : std::nullopt;
    if (wanted && !id && s.h.has(fmt::format("tokenizer.ggml.add_{}_token", role)))
      throw ContentsError("{}: add_{}_token is true, but there is no {}_token_id", s.h.path, role, role);
    return id;
  };
  const auto first = of(bos, "bos"), last = of(eos, "eos");
  return first || last ? surrounding(s, first, last) : Json();
}

Json vocabulary(const Source& s) {
  Json out = Json::object();
  std::unordered_map<std::string_view, std::size_t> seen;
  for (std::size_t i = 0; i < s.tokens.size(); ++i)
    if (!seen.emplace(s.tokens[i], i).second)
      throw ContentsError("{}: the tokens {} and {} are both '{}'", s.h.path, seen[s.tokens[i]], i,
                          excerpt(s.tokens[i]));
  for (std::size_t i = 0; i < s.tokens.size(); ++i) out[s.tokens[i]] = i;
  return out;
}

Json byte_level_bpe(const Source& s) {
  const auto* merges = s.h.texts("tokenizer.ggml.merges");
  if (!merges) throw ContentsError("{}: the key tokenizer.ggml.merges is missing", s.h.path);
  const auto name = s.h.text("tokenizer.ggml.pre");
  if (!name)
    throw ContentsError(
        "{}: the key tokenizer.ggml.pre is missing, so it is unknown how the tokenizer splits a text. Convert "
        "the model again with a newer llama.cpp, or give the original tokenizer: model.tokenizer=FOLDER",
        s.h.path);
  const auto pre = pre_tokenizer(*name);
  if (!pre)
    throw ContentsError(
        "{}: tokenizer.ggml.pre is {}, a pre-tokenizer that redco doesn't know. Give the original tokenizer: "
        "model.tokenizer=FOLDER",
        s.h.path, excerpt(*name));
  Json steps = Json::array();
  for (const std::string& regex : pre->splits)
    steps.push_back(
        {{"type", "Split"}, {"pattern", {{"Regex", regex}}}, {"behavior", "Isolated"}, {"invert", false}});
  steps.push_back(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}});
  return {{"added_tokens", added_tokens(s)},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "Sequence"}, {"pretokenizers", steps}}},
          {"post_processor", bos_and_eos(s, pre->adds_bos)},
          {"decoder",
           {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", nullptr},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", false},
            {"byte_fallback", false},
            {"ignore_merges", pre->ignore_merges},
            {"vocab", vocabulary(s)},
            {"merges", *merges}}}};
}

// The merges of SentencePiece's BPE: each pair of pieces that makes a piece, the best score first.
Json merges_by_score(const Source& s) {
  const auto scores = s.h.numbers("tokenizer.ggml.scores");
  if (!scores || scores->size() != s.tokens.size())
    throw ContentsError("{}: {} tokens and {} tokenizer.ggml.scores, expected the same number", s.h.path,
                        s.tokens.size(), scores ? scores->size() : 0);
  const auto is_text = [&](std::size_t i) {
    return s.kinds[i] == Kind::normal || s.kinds[i] == Kind::user_defined || s.kinds[i] == Kind::unused;
  };
  std::unordered_map<std::string_view, std::size_t> ids;
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < s.tokens.size(); ++i)
    if (is_text(i)) {
      ids.emplace(s.tokens[i], i);
      order.push_back(i);
    }
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return (*scores)[a] > (*scores)[b]; });
  Json out = Json::array();
  for (const std::size_t i : order) {
    const std::string_view text = s.tokens[i];
    for (const char *q = text.data(), *end = q + text.size(); q < end;) {
      next_code_point(q);
      const auto n = static_cast<std::size_t>(q - text.data());
      if (q < end && ids.count(text.substr(0, n)) && ids.count(text.substr(n)))
        out.push_back({text.substr(0, n), text.substr(n)});
    }
  }
  return out;
}

// Merges over the whole text, whose spaces are U+2581, with bytes for what has no token. `own_merges`: the
// file has the merges (Gemma 4), else the scores give them.
Json sentencepiece_bpe(const Source& s, bool own_merges) {
  const bool prefix = s.flag("add_space_prefix", true);
  const auto unk = s.id("unknown");
  Json normalizers = Json::array();
  if (prefix) normalizers.push_back({{"type", "Prepend"}, {"prepend", kSpaceMark}});
  normalizers.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMark}});
  Json decoders = Json::array({{{"type", "Replace"}, {"pattern", {{"String", kSpaceMark}}}, {"content", " "}},
                               {{"type", "ByteFallback"}},
                               {{"type", "Fuse"}}});
  if (prefix) decoders.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  const auto* merges = own_merges ? s.h.texts("tokenizer.ggml.merges") : nullptr;
  if (own_merges && !merges) throw ContentsError("{}: the key tokenizer.ggml.merges is missing", s.h.path);
  Json pre;
  if (own_merges)
    pre = {{"type", "Split"},
           {"pattern", {{"Regex", "[^\\n]+|[\\n]+"}}},
           {"behavior", "Isolated"},
           {"invert", false}};
  return {{"added_tokens", added_tokens(s)},
          {"normalizer", {{"type", "Sequence"}, {"normalizers", normalizers}}},
          {"pre_tokenizer", pre},
          {"post_processor", bos_and_eos(s, true)},
          {"decoder", {{"type", "Sequence"}, {"decoders", decoders}}},
          {"model",
           {{"type", "BPE"},
            {"dropout", nullptr},
            {"unk_token", unk ? Json(s.tokens[static_cast<std::size_t>(*unk)]) : Json()},
            {"continuing_subword_prefix", nullptr},
            {"end_of_word_suffix", nullptr},
            {"fuse_unk", true},
            {"byte_fallback", true},
            {"ignore_merges", false},
            {"vocab", vocabulary(s)},
            {"merges", merges ? Json(*merges) : merges_by_score(s)}}}};
}

// WordPiece. The file marks the beginning of a word with U+2581, a tokenizer.json its continuation with ##.
Json wordpiece(Source& s) {
  for (std::size_t i = 0; i < s.tokens.size(); ++i) {
    std::string& t = s.tokens[i];
    if (t.starts_with(kSpaceMark))
      t.erase(0, 3);
    else if (s.kinds[i] == Kind::normal && !(t.starts_with('[') && t.ends_with(']')))
      t.insert(0, "##");
  }
  const auto role = [&](const char* name) {
    const auto id = s.id(name);
    if (!id) throw ContentsError("{}: the key tokenizer.ggml.{}_token_id is missing", s.h.path, name);
    return *id;
  };
  const i64 cls = s.id("cls").value_or(s.id("bos").value_or(-1));
  const i64 sep = s.id("seperator").value_or(s.id("eos").value_or(-1));  // llama.cpp's spelling
  if (cls < 0 || sep < 0) throw ContentsError("{}: the file names no cls and separator tokens", s.h.path);
  return {{"added_tokens", added_tokens(s)},
          {"normalizer",
           {{"type", "BertNormalizer"},
            {"clean_text", true},
            {"handle_chinese_chars", true},
            {"strip_accents", nullptr},
            {"lowercase", true}}},
          {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
          {"post_processor", surrounding(s, cls, sep)},
          {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
          {"model",
           {{"type", "WordPiece"},
            {"unk_token", s.tokens[static_cast<std::size_t>(role("unknown"))]},
            {"continuing_subword_prefix", "##"},
            {"max_input_chars_per_word", 100},
            {"vocab", vocabulary(s)}}}};
}

Json tokenizer_config(const Source& s) {
  Json j = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  for (const auto& [role, key] :
       {std::pair("bos", "bos_token"), std::pair("eos", "eos_token"), std::pair("unknown", "unk_token"),
        std::pair("padding", "pad_token"), std::pair("seperator", "sep_token"), std::pair("cls", "cls_token"),
        std::pair("mask", "mask_token")})
    if (const auto id = s.id(role)) j[key] = s.tokens[static_cast<std::size_t>(*id)];
  if (const auto chat = s.h.text("tokenizer.chat_template")) j["chat_template"] = *chat;
  return j;
}

}  // namespace

std::optional<TokenizerFiles> folder_tokenizer(const Header& h) {
  const auto kind = h.text("tokenizer.ggml.model");
  if (!kind) return std::nullopt;
  if (*kind == "no_vocab" || *kind == "none") return std::nullopt;
  Source s(h);
  Json body;
  if (*kind == "gpt2")
    body = byte_level_bpe(s);
  else if (*kind == "llama")
    body = sentencepiece_bpe(s, false);
  else if (*kind == "gemma4")
    body = sentencepiece_bpe(s, true);
  else if (*kind == "bert")
    body = wordpiece(s);
  else
    throw ContentsError(
        "{}: tokenizer.ggml.model is {}; redco reads gpt2, llama, gemma4 and bert. Give the original tokenizer: "
        "model.tokenizer=FOLDER",
        h.path, excerpt(*kind));
  Json j = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  j.update(body);
  return TokenizerFiles{j.dump(), tokenizer_config(s).dump(2) + "\n"};
}

}  // namespace redco::gguf
