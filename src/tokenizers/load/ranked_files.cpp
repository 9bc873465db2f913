// Tokenizers given as ranked byte strings: the files of tiktoken and Mistral's tekken.json.
#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/base64.h"
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

json ranked_byte_level(bool add_prefix_space, bool use_regex) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", true},
          {"use_regex", use_regex}};
}

// The vocabulary and merges of ranked byte strings: each split of a token into two tokens is a merge, in the
// order of ranks. first: the id of rank 0.
void add_ranks(const std::vector<std::string>& ranks, i64 first, TokenizerSpec& spec) {
  const auto text = [](std::string_view bytes) {
    std::string out;
    for (const char c : bytes) append_utf8(byte_level_char(static_cast<unsigned char>(c)), out);
    return out;
  };
  std::unordered_map<std::string_view, std::size_t> rank;
  for (std::size_t k = 0; k < ranks.size(); ++k) {
    if (!rank.emplace(ranks[k], k).second)
      throw ContentsError("{}: token {} repeats token {}", spec.source, k, rank[ranks[k]]);
    spec.vocab->add(text(ranks[k]), first + static_cast<i64>(k), spec.source);
  }
  for (const std::string& token : ranks) {
    std::vector<std::array<std::size_t, 3>> splits;  // rank of the left, of the right, length of the left
    for (std::size_t n = 1; n < token.size(); ++n) {
      const auto left = rank.find(std::string_view(token).substr(0, n));
      const auto right = rank.find(std::string_view(token).substr(n));
      if (left != rank.end() && right != rank.end()) splits.push_back({left->second, right->second, n});
    }
    std::sort(splits.begin(), splits.end());
    for (const auto& s : splits)
      spec.merges.add(text(std::string_view(token).substr(0, s[2])),
                      text(std::string_view(token).substr(s[2])));
  }
  spec.has_merges = true;
}

json ranks_pipeline(std::string_view pattern, json added) {
  return {{"added_tokens", std::move(added)},
          {"pre_tokenizer",
           {{"type", "Sequence"},
            {"pretokenizers",
             {{{"type", "Split"},
               {"pattern", {{"Regex", std::string(pattern)}}},
               {"behavior", "Isolated"},
               {"invert", false}},
              ranked_byte_level(false, false)}}}},
          {"post_processor", {{"type", "ByteLevel"}, {"trim_offsets", false}}},
          {"decoder", ranked_byte_level(true, true)},
          {"model", {{"type", "BPE"}, {"ignore_merges", true}}}};
}

}  // namespace

bool is_tiktoken(std::string_view text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  const auto space = line.find(' ');
  return space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
         line.substr(0, space).find_first_not_of(
             "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") == std::string_view::npos &&
         line.substr(space + 1).find_first_not_of("0123456789\r") == std::string_view::npos;
}

TokenizerSpec read_tiktoken(std::string_view text, const json& config, const std::string& source) {
  TokenizerSpec spec;
  spec.source = source;
  spec.vocab.emplace();
  std::vector<std::string> ranks;
  for (i64 number = 1; !text.empty(); ++number) {
    const auto end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty()) continue;
    const auto space = line.find(' ');
    const std::string where = fmt::format("{}:{}", source, number);
    if (space == std::string_view::npos || line.substr(space + 1) != std::to_string(ranks.size()))
      throw ContentsError("{}: '{}': expected a token in base64 and its rank {}", where, line.substr(0, 100),
                          ranks.size());
    ranks.push_back(decode_base64(line.substr(0, space), where));
  }
  add_ranks(ranks, 0, spec);
  spec.vocab->finish(source);
  // Ids of added_tokens_decoder after the ranks; ids without a token are reserved.
  std::map<i64, std::string> after;
  if (const auto it = config.find("added_tokens_decoder"); it != config.end() && it->is_object())
    for (const auto& [id, token] : it->items()) {
      const json& content = token.is_object() && token.contains("content") ? token["content"] : token;
      if (id.size() > 9 || id.find_first_not_of("0123456789") != std::string::npos || !content.is_string())
        throw ContentsError("{}: tokenizer_config.json: added_tokens_decoder: '{}' is not an id with a token",
                            source, id.substr(0, 50));
      if (std::stoll(id) >= static_cast<i64>(ranks.size())) after[std::stoll(id)] = content;
    }
  json added = json::array();
  const i64 last = after.empty() ? -1 : after.rbegin()->first;
  if (last > static_cast<i64>(ranks.size()) + 100'000)
    throw ContentsError("{}: tokenizer_config.json: added_tokens_decoder: the id {} is far from the {} ranks",
                        source, last, ranks.size());
  for (i64 id = spec.vocab->count(); id <= last; ++id)
    added.push_back(
        added_token(after.contains(id) ? after[id] : fmt::format("<|reserved_token_{}|>", id), id, true));
  *spec.rest = ranks_pipeline(pattern_of(WordSplit::llama3), std::move(added));
  return spec;
}

TokenizerSpec read_tekken(std::string_view text, const std::string& source) {
  const json file = parse_small_json(text, source);
  JsonFields f(file, source);
  JsonFields config(f.need("config"), source + ": config");
  TokenizerSpec spec;
  spec.source = source;
  spec.vocab.emplace();
  const i64 n_special = config.integer("default_num_special_tokens", 1000);
  if (f.find("special_tokens") == nullptr)
    throw ContentsError(
        "{}: special_tokens is missing (an old tekken file); expected a tokenizer.json, which "
        "AutoTokenizer.from_pretrained(...).save_pretrained(...) writes",
        source);
  std::map<i64, std::string> special;
  for (const json& t : f.array("special_tokens")) {
    JsonFields token(t, source + ": special_tokens");
    special[token.integer("rank")] = token.text("token_str");
  }
  if (n_special < static_cast<i64>(special.size()) || n_special > 100'000 ||
      (!special.empty() &&
       (special.begin()->first != 0 || special.rbegin()->first + 1 != static_cast<i64>(special.size()))))
    throw ContentsError("{}: the ranks of special_tokens must be 0 to below {}, without gaps", source,
                        special.size());
  const json& vocab = f.array("vocab");
  const i64 total = config.integer("default_vocab_size", n_special + static_cast<i64>(vocab.size()));
  const i64 keep = std::min(static_cast<i64>(vocab.size()), total - n_special);
  if (keep < 1) throw ContentsError("{}: default_vocab_size {} leaves no tokens", source, total);
  std::vector<std::string> ranks;
  for (i64 k = 0; k < keep; ++k) {
    JsonFields token(vocab[static_cast<std::size_t>(k)], fmt::format("{}: vocab[{}]", source, k));
    ranks.push_back(decode_base64(token.text("token_bytes"), token.at("token_bytes")));
  }
  json added = json::array();
  for (i64 id = 0; id < n_special; ++id) {
    const std::string name = special.contains(id) ? special[id] : fmt::format("<SPECIAL_{}>", id);
    spec.vocab->add(name, id, source);
    added.push_back(added_token(name, id, true));
  }
  add_ranks(ranks, n_special, spec);
  spec.vocab->finish(source);
  *spec.rest = ranks_pipeline(config.text("pattern"), std::move(added));
  return spec;
}

}  // namespace redco
