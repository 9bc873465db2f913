// Tokenizers that have no tokenizer.json: GPT-2's vocab.json and merges.txt, and the built-in `bytes`.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/load/config_tokens.h"
#include "tokenizers/load/tokenizer_spec.h"
#include "tokenizers/pre_tokenizers/byte_level.h"
#include "tokenizers/pre_tokenizers/word_splits.h"

namespace redco {
namespace {

using nlohmann::json;

json byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

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

}  // namespace

TokenizerSpec read_legacy_bpe(std::string_view vocab_json, std::string_view merges_txt, const json& added,
                              const json& config, const std::string& folder) {
  TokenizerSpec spec;
  spec.source = folder + "/vocab.json";
  spec.vocab = parse_vocab_json(vocab_json, spec.source);
  read_merges(merges_txt, folder + "/merges.txt", spec.merges);
  spec.has_merges = true;

  const std::string config_source = folder + "/tokenizer_config.json";
  JsonFields fields(config, config_source);
  std::string kind = fields.text("tokenizer_class", "GPT2Tokenizer");
  if (kind.ends_with("Fast")) kind.resize(kind.size() - 4);
  const bool gpt2 = kind == "GPT2Tokenizer" || kind == "CodeGenTokenizer";
  const bool roberta = kind == "RobertaTokenizer" || kind == "BartTokenizer";
  const bool qwen = kind == "Qwen2Tokenizer";
  if (!gpt2 && !roberta && !qwen)
    unknown_type(
        config_source + ": tokenizer_class", kind,
        "GPT2Tokenizer, CodeGenTokenizer, RobertaTokenizer, BartTokenizer, Qwen2Tokenizer with vocab.json "
        "and merges.txt; any with a tokenizer.json");
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
  *spec.rest = {{"added_tokens", std::move(list)},   {"normalizer", std::move(normalizer)},
                {"pre_tokenizer", std::move(pre)},   {"post_processor", std::move(post)},
                {"decoder", byte_level(true, true)}, {"model", {{"type", "BPE"}}}};
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
