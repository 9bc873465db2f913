// Converts a folder with a sentencepiece model and no tokenizer.json, and BERT's vocab.txt, to a pipeline of
// Hugging Face's tokenizers, as transformers does.
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/load/class_tokens.h"
#include "tokenizers/load/config_tokens.h"
#include "tokenizers/load/tokenizer_spec.h"
#include "tokenizers/sentencepiece/sp_classes.h"
#include "tokenizers/sentencepiece/sp_pipeline.h"
#include "tokenizers/sentencepiece/sp_plain.h"
#include "unicode/char_class.h"

namespace redco {
namespace {

using nlohmann::json;

std::string class_of(const json& config, const std::string& model_type, const std::string& source) {
  JsonFields f(config, source);
  std::string of_type = class_of_model_type(model_type);
  if (of_type != "T5Tokenizer" && !is_sp_class(of_type)) of_type.clear();
  std::string kind = f.text("tokenizer_class", of_type);
  if (kind.ends_with("Fast")) kind.resize(kind.size() - 4);
  // transformers ignores the class for these model types.
  for (const char* generic : {"mistral", "mistral3", "ministral", "ministral3", "mixtral", "phi3", "qwen2",
                              "internlm2", "internlm3", "minicpm3", "jamba", "nemotron"})
    if (model_type == generic) kind.clear();
  return kind == "PreTrainedTokenizer" || kind == "TokenizersBackend" ? "" : kind;
}

// `line` without white space at the end.
std::string_view trimmed(std::string_view line) {
  while (!line.empty()) {
    const char* start = previous_character(line.data(), line.data() + line.size());
    const char* p = start;
    if (!(char_classes()[next_code_point(p)] & kSpace)) break;
    line = line.substr(0, static_cast<std::size_t>(start - line.data()));
  }
  return line;
}

}  // namespace

TokenizerSpec read_sp_folder(const SpModel& model, const json& config, const std::string& model_type,
                             const std::string& folder) {
  const std::string source = folder + "/tokenizer_config.json";
  const std::string kind = class_of(config, model_type, source);
  if (is_sp_class(kind)) return read_sp_class(kind, model, config, folder);
  if (kind.empty()) return read_sp_plain(model, config, folder);
  const bool t5 = kind == "T5Tokenizer", llama = kind == "LlamaTokenizer";
  if (!llama && !t5)
    unknown_type(
        source + ": tokenizer_class", kind,
        fmt::format(
            "LlamaTokenizer, T5Tokenizer, PreTrainedTokenizerFast, {} with a sentencepiece model; any "
            "with a tokenizer.json (AutoTokenizer.from_pretrained(...).save_pretrained(...) writes one)",
            sp_class_names()));
  JsonFields fields(config, source);

  TokenizerSpec spec;
  spec.source = source;
  spec.vocab.emplace();
  for (const SpModel::Piece& p : model.pieces) {
    spec.vocab->add(p.text, spec.vocab->count(), folder);
    if (t5) spec.scores.push_back(static_cast<double>(p.score));
  }
  const i64 extra_ids = t5 ? fields.integer("extra_ids", 100) : 0;
  if (extra_ids < 0 || extra_ids > 100'000)
    throw ContentsError("{}: {} is outside of 0..100000", fields.at("extra_ids"), extra_ids);
  for (i64 k = extra_ids; k-- > 0;) {
    spec.vocab->add(fmt::format("<extra_id_{}>", k), spec.vocab->count(), folder);
    spec.scores.push_back(0);
  }
  spec.vocab->finish(folder, true);

  const json otherwise = t5 ? json{{"unk_token", "<unk>"}, {"eos_token", "</s>"}, {"pad_token", "<pad>"}}
                            : json{{"unk_token", "<unk>"}, {"bos_token", "<s>"}, {"eos_token", "</s>"}};
  for (const auto& [role, token] : otherwise.items()) spec.roles[role] = token;
  AddedTokenList list;
  list.add_from(config, otherwise, source);
  for (const SpModel::Piece& p : model.pieces)
    if (p.kind == SpModel::Kind::control || p.kind == SpModel::Kind::user_defined)
      list.add(added_token(p.text, 0, p.kind == SpModel::Kind::control));
  for (i64 k = 0; k < extra_ids; ++k) list.add(added_token(fmt::format("<extra_id_{}>", k), 0, true));
  json added = list.finish(*spec.vocab);

  json normalizer, pre, post, decoder, body;
  if (t5) {
    if (!model.charsmap.empty()) normalizer = precompiled(model);
    pre = {{"type", "Sequence"},
           {"pretokenizers", {{{"type", "WhitespaceSplit"}}, metaspace("always", true)}}};
    decoder = metaspace("always", true);
    const json eos = entry(added, role_text(config, "eos_token", "</s>", source), source + ": eos_token");
    const json a = sequence_part("A", 0), b = sequence_part("B", 0), s = special_part(eos, 0);
    post = template_of({a, s}, {a, s, b, s}, {eos});
    // In T5's code the id of the unknown token is 2, whatever the model says.
    body = {{"type", "Unigram"}, {"unk_id", 2}, {"byte_fallback", false}};
  } else {
    const bool prefix = fields.boolean("add_prefix_space", true);
    const bool legacy = fields.boolean("legacy", false);
    pre = metaspace(!prefix ? "never" : legacy ? "always" : "first", false);
    json parts = {replace(kSpaceMark, " "), {{"type", "ByteFallback"}}, {{"type", "Fuse"}}};
    if (prefix) parts.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
    decoder = {{"type", "Sequence"}, {"decoders", std::move(parts)}};
    post = bos_eos_template(config, added, role_text(config, "bos_token", "<s>", source),
                            role_text(config, "eos_token", "</s>", source), source);
    make_merges(model, *spec.vocab, spec.merges);
    spec.has_merges = true;
    body = {{"type", "BPE"}, {"fuse_unk", true}, {"byte_fallback", true}};
  }
  *spec.rest = {{"added_tokens", std::move(added)}, {"normalizer", std::move(normalizer)},
                {"pre_tokenizer", std::move(pre)},  {"post_processor", std::move(post)},
                {"decoder", std::move(decoder)},    {"model", std::move(body)}};
  return spec;
}

TokenizerSpec read_vocab_txt(std::string_view text, const json& config, const std::string& source) {
  const std::string config_source = source + " (tokenizer_config.json)";
  JsonFields fields(config, config_source);
  std::string kind = fields.text("tokenizer_class", "BertTokenizer");
  if (kind.ends_with("Fast")) kind.resize(kind.size() - 4);
  if (kind != "BertTokenizer" && kind != "DistilBertTokenizer" && kind != "ElectraTokenizer")
    unknown_type(config_source + ": tokenizer_class", kind,
                 "BertTokenizer, DistilBertTokenizer, ElectraTokenizer with vocab.txt; any with a "
                 "tokenizer.json");
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos)
    throw ContentsError("{}: byte {} is not UTF-8", source, bad);
  std::map<std::string_view, i64> last;  // the last line of a repeated token gives its id
  i64 line = 0;
  for (std::size_t from = 0; from < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', from), text.size());
    last[trimmed(text.substr(from, end - from))] = line;
    from = end + 1;
  }
  TokenizerSpec spec;
  spec.source = source;
  spec.vocab.emplace();
  for (const auto& [token, id] : last) spec.vocab->add(token, id, source);
  spec.vocab->finish(source);

  const json otherwise = {{"unk_token", "[UNK]"},
                          {"sep_token", "[SEP]"},
                          {"pad_token", "[PAD]"},
                          {"cls_token", "[CLS]"},
                          {"mask_token", "[MASK]"}};
  for (const auto& [role, token] : otherwise.items()) spec.roles[role] = token;
  AddedTokenList list;
  list.add_from(config, otherwise, config_source);
  json added = list.finish(*spec.vocab);
  auto role = [&](const char* name) {
    return entry(added, role_text(config, name, otherwise[name].get<std::string>(), config_source),
                 config_source + ": " + name);
  };
  const json cls = role("cls_token"), sep = role("sep_token"), unk = role("unk_token");
  const json a = sequence_part("A", 0), b = sequence_part("B", 1);
  const bool lower = fields.boolean("do_lower_case", true);
  json normalizer = {{"type", "BertNormalizer"},
                     {"clean_text", true},
                     {"handle_chinese_chars", fields.boolean("tokenize_chinese_chars", true)},
                     {"strip_accents", fields.boolean("strip_accents", lower)},
                     {"lowercase", lower}};
  json post =
      template_of({special_part(cls, 0), a, special_part(sep, 0)},
                  {special_part(cls, 0), a, special_part(sep, 0), b, special_part(sep, 1)}, {cls, sep});
  *spec.rest = {{"added_tokens", std::move(added)},
                {"normalizer", std::move(normalizer)},
                {"pre_tokenizer", {{"type", "BertPreTokenizer"}}},
                {"post_processor", std::move(post)},
                {"decoder", {{"type", "WordPiece"}, {"prefix", "##"}, {"cleanup", true}}},
                {"model",
                 {{"type", "WordPiece"},
                  {"unk_token", unk["content"]},
                  {"continuing_subword_prefix", "##"},
                  {"max_input_chars_per_word", 100}}}};
  return spec;
}

}  // namespace redco
