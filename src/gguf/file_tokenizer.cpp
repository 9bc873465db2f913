// tokenizer.ggml.* from a tokenizer.json.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/error.h"
#include "gguf/file_metadata.h"
#include "gguf/folder_tokenizer.h"

namespace redco::gguf {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMark = "\xE2\x96\x81";  // U+2581
enum TokenKind : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6
};

Json part(const Json& j, const char* name) {
  const auto it = j.find(name);
  return it == j.end() ? Json() : *it;
}
std::string type_of(const Json& j) { return j.is_object() ? j.value("type", "") : ""; }
// The steps of a Sequence under `list`, or the stage alone; none for null.
std::vector<Json> steps_of(const Json& stage, const char* list) {
  if (stage.is_null()) return {};
  if (type_of(stage) != "Sequence") return {stage};
  std::vector<Json> out;
  for (const Json& s : part(stage, list)) out.push_back(s);
  return out;
}

class TokenizerWriter {
 public:
  explicit TokenizerWriter(const TokenizerSource& s) : s_(s), model_(part(s.json, "model")) {}

  MetadataList write() {
    const std::string model = type_of(model_);
    if (model != "WordPiece" && model != "BPE") refuse(fmt::format("a {} model", model));
    read_vocabulary();
    if (model == "WordPiece")
      word_piece();
    else if (model_.value("byte_fallback", false))
      sentencepiece();
    else
      byte_level();
    put("tokens", tokens_);
    put("token_type", kinds_);
    for (const auto& [role, id] : s_.roles) put(role + "_token_id", static_cast<std::uint32_t>(id));
    put("add_bos_token", s_.adds_bos);
    put("add_eos_token", s_.adds_eos);
    if (!s_.chat_template.empty()) out_.emplace_back("tokenizer.chat_template", s_.chat_template);
    return std::move(out_);
  }

 private:
  void put(const std::string& key, Metadata v) { out_.emplace_back("tokenizer.ggml." + key, std::move(v)); }
  [[noreturn]] void refuse(const std::string& what) const {
    throw ContentsError("{}: llama.cpp has no name for {}; use --to hf", s_.where, what);
  }

  void read_vocabulary() {
    tokens_.assign(static_cast<std::size_t>(s_.rows), "");
    kinds_.assign(tokens_.size(), kNormal);
    const auto set = [&](const std::string& token, i64 id, std::int32_t kind) {
      if (id < 0 || id >= s_.rows)
        throw ContentsError("{}: token {} has id {}, but the model has {} rows", s_.where, token, id,
                            s_.rows);
      tokens_[static_cast<std::size_t>(id)] = token;
      kinds_[static_cast<std::size_t>(id)] = kind;
    };
    const Json vocab = part(model_, "vocab");
    for (const auto& [token, id] : vocab.items()) set(token, id.get<i64>(), kNormal);
    for (const Json& t : part(s_.json, "added_tokens"))
      set(t.at("content"), t.at("id").get<i64>(), t.value("special", false) ? kControl : kUserDefined);
    for (std::size_t i = 0; i < tokens_.size(); ++i)
      if (tokens_[i].empty()) {
        tokens_[i] = fmt::format("[PAD{}]", i);
        kinds_[i] = kUnused;
      }
  }

  std::vector<std::string> merges() const {
    std::vector<std::string> out;
    for (const Json& m : part(model_, "merges"))
      out.push_back(m.is_string() ? m.get<std::string>()
                                  : m.at(0).get<std::string>() + " " + m.at(1).get<std::string>());
    return out;
  }

  void byte_level() {
    std::vector<std::string> splits;
    const std::string gpt2 = pre_tokenizer("gpt-2")->splits[0];
    for (const Json& step : steps_of(part(s_.json, "pre_tokenizer"), "pretokenizers")) {
      const std::string type = type_of(step);
      if (type == "Split" && step.at("pattern").contains("Regex")) {
        splits.push_back(step["pattern"]["Regex"]);
      } else if (type == "Digits" && step.value("individual_digits", false)) {
        splits.push_back("\\p{N}");
      } else if (type == "ByteLevel") {
        if (step.value("use_regex", true)) splits.push_back(gpt2);
        if (step.value("add_prefix_space", false)) put("add_space_prefix", true);
      } else {
        refuse("the pre-tokenizer " + type);
      }
    }
    const std::string name = pre_tokenizer_name(splits, model_.value("ignore_merges", false));
    const std::string other = pre_tokenizer_name(splits, !model_.value("ignore_merges", false));
    if (name.empty() && other.empty())
      refuse(fmt::format("a byte-level tokenizer that splits by {}", Json(splits).dump().substr(0, 200)));
    put("model", "gpt2");
    put("pre", name.empty() ? other : name);
    put("merges", merges());
  }

  void sentencepiece() {
    bool prefix = false;
    for (const Json& step : steps_of(part(s_.json, "normalizer"), "normalizers")) {
      const std::string type = type_of(step);
      if (type == "Prepend")
        prefix = true;
      else if (type != "Replace")
        refuse("the normalizer " + type);
    }
    for (const Json& step : steps_of(part(s_.json, "pre_tokenizer"), "pretokenizers"))
      if (type_of(step) == "Metaspace") prefix = step.value("prepend_scheme", "always") != "never";
    // A token's score is the rank of the first merge that makes it.
    std::unordered_map<std::string, std::size_t> rank;
    std::size_t number = 0;
    for (const Json& m : part(model_, "merges")) {
      std::string whole =
          m.is_string() ? m.get<std::string>() : m.at(0).get<std::string>() + m.at(1).get<std::string>();
      if (const auto space = whole.find(' '); m.is_string() && space != whole.npos) whole.erase(space, 1);
      rank.emplace(std::move(whole), number++);
    }
    std::vector<float> scores;
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      const std::string& t = tokens_[i];
      if (kinds_[i] == kNormal && t.size() == 6 && t.starts_with("<0x") && t.ends_with('>'))
        kinds_[i] = kByte;
      const auto it = rank.find(t);
      scores.push_back(kinds_[i] == kByte || kinds_[i] == kControl ? 0
                       : it != rank.end()                          ? -static_cast<float>(it->second)
                                                                   : -static_cast<float>(number) - 1);
    }
    if (const Json unk = part(model_, "unk_token"); unk.is_string())
      for (std::size_t i = 0; i < tokens_.size(); ++i)
        if (tokens_[i] == unk.get<std::string>()) kinds_[i] = kUnknown;
    put("model", "llama");
    put("pre", "default");
    put("scores", scores);
    put("add_space_prefix", prefix);
  }

  void word_piece() {
    const Json normalizer = part(s_.json, "normalizer");
    if (type_of(normalizer) != "BertNormalizer" || !normalizer.value("lowercase", true))
      refuse("a WordPiece tokenizer that keeps upper case");
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      std::string& t = tokens_[i];
      if (kinds_[i] != kNormal) continue;
      if (t.starts_with("##"))
        t.erase(0, 2);
      else if (!(t.starts_with('[') && t.ends_with(']')))
        t.insert(0, kMark);
    }
    put("model", "bert");
    put("pre", "default");
  }

  const TokenizerSource& s_;
  Json model_;
  MetadataList out_;
  std::vector<std::string> tokens_;
  std::vector<std::int32_t> kinds_;
};

}  // namespace

MetadataList file_tokenizer(const TokenizerSource& s) { return TokenizerWriter(s).write(); }

}  // namespace redco::gguf
