// Tokenizers that have no tokenizer.json: GPT-2's vocab.json and merges.txt, and the built-in `bytes`.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/load/config_tokens.h"
#include "tokenizers/load/tokenizer_spec.h"
#include "tokenizers/pre_tokenizers/byte_level.h"
#include "tokenizers/pre_tokenizers/word_splits.h"
#include "tokenizers/sentencepiece/sp_pipeline.h"

namespace redco {
namespace {

using nlohmann::json;

json byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

constexpr std::string_view kBpeClasses[] = {"GPT2Tokenizer",   "CodeGenTokenizer", "RobertaTokenizer",
                                            "BartTokenizer",   "Qwen2Tokenizer",   "CLIPTokenizer",
                                            "WhisperTokenizer"};

void read_merges(std::string_view text, const std::string& source, Merges& merges) {
  i64 number = 0;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.starts_with("#version")) continue;
    const auto space = line.find(' ');
    if (space == std::string_view::npos || space == 0 || space + 1 == line.size() ||
        line.find(' ', space + 1) != std::string_view::npos)
      throw ContentsError("{}:{}: '{}': expected two tokens separated by one space", source, number,
                          line.substr(0, 100));
    merges.add(line.substr(0, space), line.substr(space + 1));
  }
}

// <|startoftranscript|> <|en|> <|transcribe|> <|notimestamps|> A <|endoftext|>; language, task and
// predict_timestamps of the config decide which of them are there.
json whisper_template(const json& config, const json& added, const Vocab& vocab, const std::string& source) {
  JsonFields f(config, source);
  std::vector<std::string> names = {"<|startoftranscript|>"};
  if (f.find("language") != nullptr) names.push_back("<|" + f.text("language") + "|>");
  if (f.find("task") != nullptr) names.push_back("<|" + f.text("task") + "|>");
  if (!f.boolean("predict_timestamps", false)) names.push_back("<|notimestamps|>");
  names.push_back(f.text("eos_token", "<|endoftext|>"));
  std::vector<json> tokens;
  for (const std::string& name : names) {
    json token = {{"content", name}, {"id", vocab.find(name)}};
    for (const json& t : added)
      if (t["content"] == name) token["id"] = t["id"];
    if (token["id"] == -1)
      throw ContentsError(
          "{}: the token '{}' of WhisperTokenizer is neither in vocab.json nor in added_tokens.json (language "
          "is a code, such as en; task is transcribe or translate)",
          source, name.substr(0, 100));
    tokens.push_back(std::move(token));
  }
  json single = json::array(), pair = json::array();
  for (std::size_t k = 0; k + 1 < tokens.size(); ++k) single.push_back(special_part(tokens[k], 0));
  pair = single;
  single.push_back(sequence_part("A", 0));
  single.push_back(special_part(tokens.back(), 0));
  pair.insert(pair.end(), {sequence_part("A", 0), sequence_part("B", 1), special_part(tokens.back(), 1)});
  return template_of(std::move(single), std::move(pair), tokens);
}

}  // namespace

TokenizerSpec read_legacy_bpe(std::string_view vocab_json, std::string_view merges_txt, const json& added,
                              const json& config, const std::string& of_type, const std::string& folder) {
  TokenizerSpec spec;
  spec.source = folder + "/vocab.json";
  spec.vocab = parse_vocab_json(vocab_json, spec.source);
  read_merges(merges_txt, folder + "/merges.txt", spec.merges);
  spec.has_merges = true;

  const std::string config_source = folder + "/tokenizer_config.json";
  JsonFields fields(config, config_source);
  const auto known = [](std::string_view name) {
    return std::ranges::find(kBpeClasses, name) != std::end(kBpeClasses);
  };
  std::string kind = fields.text("tokenizer_class", known(of_type) ? of_type : "GPT2Tokenizer");
  if (kind.ends_with("Fast")) kind.resize(kind.size() - 4);
  if (!known(kind))
    unknown_type(config_source + ": tokenizer_class", kind,
                 fmt::format("{} with vocab.json and merges.txt; any with a tokenizer.json",
                             fmt::join(kBpeClasses, ", ")));
  const bool roberta = kind == "RobertaTokenizer" || kind == "BartTokenizer";
  const bool qwen = kind == "Qwen2Tokenizer", clip = kind == "CLIPTokenizer",
             whisper = kind == "WhisperTokenizer";
  const bool prefix = fields.boolean("add_prefix_space", false);

  // Added tokens by id: the special tokens of the configuration, and those of added_tokens.json.
  std::map<i64, json> tokens;
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "pad_token", "cls_token", "sep_token", "mask_token"}) {
    auto token = special_of(config, name, config_source);
    if (!token) continue;
    const auto text = token->at("content").get<std::string>();
    i64 id = spec.vocab->find(text);
    if (const auto it = added.find(text); id < 0 && it != added.end() && it->is_number_integer())
      id = it->get<i64>();
    if (id < 0)
      throw ContentsError("{}: {} '{}' is neither in vocab.json nor in added_tokens.json", config_source,
                          name, text.substr(0, 100));
    token->at("id") = id;
    tokens.emplace(id, std::move(*token));
  }
  for (const auto& [text, id] : added.items()) {
    if (!id.is_number_integer())
      throw ContentsError("{}/added_tokens.json: the id of '{}' is not an integer", folder,
                          text.substr(0, 100));
    tokens.emplace(id.get<i64>(), added_token(text, id.get<i64>(), true));
  }
  json list = json::array();
  for (auto& [id, token] : tokens) list.push_back(std::move(token));

  json decoder = byte_level(true, true), model = {{"type", "BPE"}};
  json pre = byte_level(prefix, true), post = byte_level(true, true), normalizer = nullptr;
  post["trim_offsets"] = false;
  auto pair_of = [&](const char* name, const char* otherwise) -> json {
    const auto token = special_of(config, name, config_source);
    const std::string text = token ? token->at("content").get<std::string>() : std::string(otherwise);
    const i32 id = spec.vocab->find(text);
    if (id < 0)
      throw ContentsError("{}: {} '{}' is not in vocab.json", config_source, name, text.substr(0, 100));
    return json::array({text, id});
  };
  if (roberta) {
    post = {{"type", "RobertaProcessing"},
            {"sep", pair_of("sep_token", "</s>")},
            {"cls", pair_of("cls_token", "<s>")},
            {"trim_offsets", true},
            {"add_prefix_space", prefix}};
  } else if (clip) {
    const json bos = pair_of("bos_token", "<|startoftext|>"), eos = pair_of("eos_token", "<|endoftext|>");
    post = {{"type", "RobertaProcessing"}, {"sep", eos}, {"cls", bos}};
    normalizer = {{"type", "Sequence"},
                  {"normalizers",
                   {{{"type", "NFC"}},
                    {{"type", "Replace"}, {"pattern", {{"Regex", "\\s+"}}}, {"content", " "}},
                    {{"type", "Lowercase"}}}}};
    pre = {
        {"type", "Sequence"},
        {"pretokenizers",
         {{{"type", "Split"},
           {"pattern",
            {{"Regex",
              R"(<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+)"}}},
           {"behavior", "Removed"},
           {"invert", true}},
          byte_level(false, true)}}};
    // transformers replaces the end-of-word mark after decoding, then strips the text.
    decoder = {{"type", "Sequence"},
               {"decoders",
                {byte_level(true, true),
                 {{"type", "Replace"}, {"pattern", {{"String", "</w>"}}}, {"content", " "}},
                 {{"type", "Strip"}, {"content", " "}, {"start", 1 << 20}, {"stop", 1 << 20}}}}};
    const auto unk = special_of(config, "unk_token", config_source);
    model["end_of_word_suffix"] = "</w>";
    model["unk_token"] = unk ? unk->at("content") : json("<|endoftext|>");
  } else if (whisper) {
    post = whisper_template(config, list, *spec.vocab, config_source);
  } else if (qwen) {
    normalizer = {{"type", "NFC"}};
    pre = {{"type", "Sequence"},
           {"pretokenizers",
            {{{"type", "Split"},
              {"pattern", {{"Regex", std::string(pattern_of(WordSplit::qwen))}}},
              {"behavior", "Isolated"},
              {"invert", false}},
             byte_level(prefix, false)}}};
  } else if (fields.boolean("add_bos_token", false)) {
    const json bos = pair_of("bos_token", "<|endoftext|>");
    auto special = [&](int type) { return json{{"SpecialToken", {{"id", bos[0]}, {"type_id", type}}}}; };
    auto sequence = [](const char* name, int type) {
      return json{{"Sequence", {{"id", name}, {"type_id", type}}}};
    };
    post = {{"type", "TemplateProcessing"},
            {"single", {special(0), sequence("A", 0)}},
            {"pair", {special(0), sequence("A", 0), special(1), sequence("B", 1)}},
            {"special_tokens",
             {{bos[0].get<std::string>(), {{"id", bos[0]}, {"ids", {bos[1]}}, {"tokens", {bos[0]}}}}}}};
  }
  *spec.rest = {{"added_tokens", std::move(list)}, {"normalizer", std::move(normalizer)},
                {"pre_tokenizer", std::move(pre)}, {"post_processor", std::move(post)},
                {"decoder", std::move(decoder)},   {"model", std::move(model)}};
  return spec;
}

std::string bytes_tokenizer_json() {
  std::string ordered;  // json objects sort their keys, but the file must list the bytes in order
  for (int b = 0; b < 256; ++b) {
    std::string token;
    append_utf8(byte_level_char(static_cast<unsigned char>(b)), token);
    ordered += fmt::format("{}      {}: {}", b == 0 ? "" : ",\n", json(token).dump(), b);
  }
  return fmt::format(R"({{
  "version": "1.0",
  "truncation": null,
  "padding": null,
  "added_tokens": [{}],
  "normalizer": null,
  "pre_tokenizer": {},
  "post_processor": null,
  "decoder": {},
  "model": {{
    "type": "BPE",
    "dropout": null,
    "unk_token": null,
    "continuing_subword_prefix": null,
    "end_of_word_suffix": null,
    "fuse_unk": false,
    "byte_fallback": false,
    "ignore_merges": false,
    "vocab": {{
{}
    }},
    "merges": []
  }}
}}
)",
                     added_token("<|endoftext|>", 256, true).dump(), byte_level(false, false).dump(),
                     byte_level(false, false).dump(), ordered);
}

std::string bytes_tokenizer_config_json() {
  return R"({
  "bos_token": "<|endoftext|>",
  "clean_up_tokenization_spaces": false,
  "eos_token": "<|endoftext|>",
  "tokenizer_class": "PreTrainedTokenizerFast"
}
)";
}

}  // namespace redco
