#include "tokenizers/tokenizer.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "tokenizers/hf_tokenizer.h"
#include "tokenizers/load/class_tokens.h"
#include "tokenizers/load/special_tokens.h"
#include "tokenizers/load/tokenizer_spec.h"
#include "tokenizers/mapped_pieces.h"
#include "tokenizers/sentencepiece/sp_classes.h"

namespace redco {
namespace {

using nlohmann::json;

constexpr i64 kMaxFile = i64{256} << 20;  // of a tokenizer.json; the largest known is 35 MB
constexpr i64 kMaxSmallFile = i64{16} << 20;

// The tokenizer files of a Hugging Face folder.
constexpr const char* kNames[] = {"tokenizer.json",
                                  "tokenizer_config.json",
                                  "special_tokens_map.json",
                                  "added_tokens.json",
                                  "vocab.json",
                                  "merges.txt",
                                  "tokenizer.model",
                                  "spiece.model",
                                  "sentencepiece.bpe.model",
                                  "spm.model",
                                  "source.spm",
                                  "target.spm",
                                  "tekken.json",
                                  "vocab.txt",
                                  "chat_template.jinja",
                                  "chat_template.json"};

struct Seen {
  std::string name, path;
  u64 hash;
};

// The files of `folder` with their present state. files() later checks that they are unchanged.
std::vector<Seen> see(const std::string& folder) {
  std::vector<Seen> seen;
  for (const char* name : kNames) {
    const std::string path = join_path(folder, name);
    if (exists(path) && !is_folder(path)) seen.push_back({name, path, hash64(read_file(path, kMaxFile))});
  }
  return seen;
}

std::vector<TokenizerFile> read_again(const std::vector<Seen>& seen) {
  std::vector<TokenizerFile> files;
  for (const Seen& s : seen) {
    files.push_back({s.name, read_file(s.path, kMaxFile)});
    if (hash64(files.back().contents) != s.hash)
      throw ContentsError(
          "{}: the file has changed since the tokenizer was loaded; restore it, or start the run again",
          s.path);
  }
  return files;
}

json read_small(const std::string& path) {
  if (!exists(path)) return json::object();
  json v = parse_small_json(read_file(path, kMaxSmallFile), path);
  if (!v.is_object()) throw ContentsError("{}: the file is not a JSON object", path);
  return v;
}

std::unique_ptr<Tokenizer> make_bytes() {
  const std::string text = bytes_tokenizer_json(), config = bytes_tokenizer_config_json();
  auto t = std::make_unique<HfTokenizer>(parse_tokenizer_json(text, "bytes"), "bytes", [text, config] {
    return std::vector<TokenizerFile>{{"tokenizer.json", text}, {"tokenizer_config.json", config}};
  });
  t->read_special(json::parse(config), "bytes");
  return t;
}

// Older files that transformers reads with a vocabulary. special_tokens_map.json names the special tokens
// that the configuration doesn't name. added_tokens.json, {token: id}, replaces a missing
// added_tokens_decoder.
void add_older_files(json& config, const std::string& folder) {
  const json map = read_small(join_path(folder, "special_tokens_map.json"));
  for (const auto& [role, token] : map.items())
    if (!config.contains(role)) config[role] = token;
  const std::string path = join_path(folder, "added_tokens.json");
  const json added = read_small(path);
  if (added.empty() || config.contains("added_tokens_decoder")) return;
  json& decoder = config["added_tokens_decoder"] = json::object();
  for (const auto& [text, id] : added.items()) {
    if (!id.is_number_unsigned())
      throw ContentsError("{}: the id of '{}' is not a number", path, text.substr(0, 100));
    const bool special = std::any_of(config.begin(), config.end(), [&](const json& v) {
      return v == text || (v.is_object() && v.contains("content") && v["content"] == text);
    });
    decoder[std::to_string(id.get<u64>())] = {
        {"content", text}, {"normalized", !special}, {"special", special}};
  }
}

enum class Kind { json, vocab_json, sentencepiece, tekken, vocab_txt, mapped, byt5 };

// The file to load, and the name to save it under.
struct Source {
  Kind kind;
  std::string path, name;
};

// kind: the tokenizer class.
Source source_of(const std::string& what, const std::string& folder, bool is_file, const std::string& kind) {
  static constexpr std::pair<const char*, Kind> kSources[] = {
      {"tokenizer.json", Kind::json},
      {"vocab.json", Kind::vocab_json},
      {"tokenizer.model", Kind::sentencepiece},
      {"spiece.model", Kind::sentencepiece},
      {"sentencepiece.bpe.model", Kind::sentencepiece},
      {"spm.model", Kind::sentencepiece},
      {"tekken.json", Kind::tekken},
      {"vocab.txt", Kind::vocab_txt}};
  if (is_file) {
    if (what.ends_with(".model")) {
      const std::string name = file_name(what);
      const bool usual = name == "spiece.model" || name == "sentencepiece.bpe.model";
      return {Kind::sentencepiece, what, usual ? name : "tokenizer.model"};
    }
    if (what.ends_with(".txt")) return {Kind::vocab_txt, what, "vocab.txt"};
    if (file_name(what) == "tekken.json") return {Kind::tekken, what, "tekken.json"};
    return {Kind::json, what, "tokenizer.json"};
  }
  for (const auto& [name, file_kind] : kSources) {
    const std::string path = join_path(folder, name);
    if (!exists(path)) continue;
    if (file_kind != Kind::json && is_mapped_class(kind)) break;
    if (file_kind == Kind::vocab_json && !exists(join_path(folder, "merges.txt")))
      throw UsageError("[tokenizer] {} has vocab.json, but merges.txt is missing", folder);
    return {file_kind, path, name};
  }
  if (kind == "ByT5Tokenizer") return {Kind::byt5, "", ""};
  if (is_mapped_class(kind)) {
    const bool marian = kind == "MarianTokenizer";
    std::vector<std::string> needed = {"vocab.json", marian ? "source.spm" : "sentencepiece.bpe.model"};
    if (marian) needed.push_back("target.spm");
    for (const std::string& name : needed)
      if (!exists(join_path(folder, name)))
        throw UsageError("[tokenizer] {}: {} needs {}, but {} is missing", folder, kind,
                         fmt::join(needed, ", "), name);
    return {Kind::mapped, join_path(folder, needed[1]), needed[1]};
  }
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".tiktoken")
      throw UsageError(
          "[tokenizer] {}: the tokenizer of {} is Python code, which redco does not run. Write a "
          "tokenizer.json: AutoTokenizer.from_pretrained(..., trust_remote_code=True), or use the tokenizer of "
          "the model's newer version",
          folder, entry.path().filename().string());
  throw UsageError(
      "[tokenizer] {} has none of tokenizer.json, vocab.json with merges.txt, tokenizer.model, spiece.model, "
      "sentencepiece.bpe.model, spm.model, source.spm with target.spm and vocab.json, tekken.json and vocab.txt",
      folder);
}

std::string digest_of(const std::vector<const std::string*>& texts) {
  Hasher hasher;
  for (const std::string* t : texts) {
    const u64 n = t->size();
    hasher.update(&n, sizeof n);
    hasher.update(t->data(), t->size());
  }
  return hasher.digest128().hex();
}

// One tokenizer of a folder. source: "source.spm", "target.spm" or the file of `s`.
class FolderReader {
 public:
  FolderReader(const Source& s, std::string folder, std::string what, bool is_file, std::string kind,
               std::function<std::vector<TokenizerFile>()> files)
      : s_(s),
        folder_(std::move(folder)),
        what_(std::move(what)),
        is_file_(is_file),
        class_(std::move(kind)),
        files_(std::move(files)),
        config_path_(join_path(folder_, "tokenizer_config.json")) {}

  // config: tokenizer_config.json. path: the main file.
  std::unique_ptr<HfTokenizer> read(json config, const std::string& path) {
    const std::string text = s_.kind == Kind::byt5 ? "" : read_file(path, kMaxFile);
    std::unique_ptr<HfTokenizer> t;
    if (s_.kind == Kind::byt5 || s_.kind == Kind::mapped) {
      if (s_.kind == Kind::mapped) add_older_files(config, folder_);
      const std::string settings = config.dump(-1, ' ', false, json::error_handler_t::replace);
      const std::string vocab =
          s_.kind == Kind::mapped ? read_file(join_path(folder_, "vocab.json"), kMaxFile) : "";
      const auto language = config.find("src_lang");
      TokenizerParts parts =
          s_.kind == Kind::byt5
              ? byt5_parts(config, config_path_)
              : mapped_parts(
                    class_, parse_sp_model(text, path),
                    parse_vocab_json(vocab, join_path(folder_, "vocab.json")), config,
                    language != config.end() && language->is_string() ? language->get<std::string>() : "",
                    config_path_);
      const ClassTokens* defaults = find_class_tokens(class_);
      constexpr const char* kNames[] = {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token"};
      for (std::size_t k = 0; k < std::size(kNames); ++k)
        if (!config.contains(kNames[k]) && *defaults->tokens[k] != '\0')
          config[kNames[k]] = defaults->tokens[k];
      t = std::make_unique<HfTokenizer>(std::move(parts), digest_of({&text, &vocab, &settings}), what_,
                                        files_);
    } else {
      auto [spec, complete] = read_spec(text, path, config);
      for (const auto& [role, token] : spec.roles)
        if (!config.contains(role)) config[role] = token;
      complete_roles(config, folder_, spec);
      if (complete) add_named_tokens(spec, config, folder_);
      t = std::make_unique<HfTokenizer>(std::move(spec), what_, files_);
    }
    t->read_special(config, config_path_);
    t->add_special(model_config_ids(config, folder_));
    return t;
  }

 private:
  // The spec, and whether tokens that only the folder's other files name are still to be added.
  std::pair<TokenizerSpec, bool> read_spec(const std::string& text, const std::string& path, json& config) {
    if (s_.kind == Kind::json) {
      TokenizerSpec spec = parse_tokenizer_json(text, path);
      set_language(spec, class_, config, config_path_);
      return {std::move(spec), true};
    }
    if (s_.kind == Kind::tekken) return {read_tekken(text, path), true};
    if (s_.kind == Kind::vocab_json)
      return {read_legacy_bpe(text, read_file(join_path(folder_, "merges.txt"), kMaxFile),
                              read_small(join_path(folder_, "added_tokens.json")), config, class_, folder_),
              true};
    add_older_files(config, folder_);
    if (s_.kind == Kind::vocab_txt) {
      TokenizerSpec spec = read_vocab_txt(text, config, path);
      // Any text file can be read as vocab.txt; one that is none lacks this token.
      if (is_file_ && spec.vocab->find(spec.roles["unk_token"]) < 0)
        throw ContentsError(
            "[tokenizer] {} has no line {}; expected a vocab.txt with one token per line, a tokenizer.json or "
            "a SentencePiece .model",
            what_, spec.roles["unk_token"]);
      return {std::move(spec), false};
    }
    if (is_tiktoken(text)) return {read_tiktoken(text, config, path), true};
    const json model_config = read_small(join_path(folder_, "config.json"));
    const auto type = model_config.find("model_type");
    const bool named = type != model_config.end() && type->is_string();
    return {
        read_sp_folder(parse_sp_model(text, path), config, named ? type->get<std::string>() : "", folder_),
        false};
  }

  const Source& s_;
  std::string folder_, what_;
  bool is_file_;
  std::string class_;
  std::function<std::vector<TokenizerFile>()> files_;
  std::string config_path_;
};

}  // namespace

void Tokenizer::save(const std::string& folder) const {
  for (const TokenizerFile& f : files()) write_file_durable(join_path(folder, f.name), f.contents);
}

bool has_tokenizer(const std::string& folder) {
  for (const char* name : {"tokenizer.json", "vocab.json", "tokenizer.model", "spiece.model",
                           "sentencepiece.bpe.model", "spm.model", "tekken.json", "vocab.txt"})
    if (exists(join_path(folder, name))) return true;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".tiktoken") return true;
  const json config = read_small(join_path(folder, "tokenizer_config.json"));
  return tokenizer_class_of(config, folder) == "ByT5Tokenizer";
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& what) {
  if (what == "bytes") return make_bytes();
  if (what.empty() || !exists(what))
    throw UsageError(
        "[tokenizer] '{}' doesn't exist; give a folder with tokenizer.json, that file, a sentencepiece "
        ".model, or `bytes`",
        what);
  const bool is_file = !is_folder(what);
  const std::string folder = is_file ? parent_path(what) : what;
  const std::string config_path = join_path(folder, "tokenizer_config.json");
  const json config = read_small(config_path);
  const std::string kind = tokenizer_class_of(config, folder);
  const Source source = source_of(what, folder, is_file, kind);

  std::vector<Seen> seen = see(folder);
  const bool usual =
      std::any_of(seen.begin(), seen.end(), [&](const Seen& s) { return s.path == source.path; });
  if (is_file && !usual) {  // a file with another name is saved under the usual name
    std::erase_if(seen, [&](const Seen& s) { return s.name == source.name; });
    seen.push_back({source.name, what, hash64(read_file(what, kMaxFile))});
  }
  auto files = [seen] { return read_again(seen); };
  if (is_file && source.kind == Kind::sentencepiece) {
    const std::string text = read_file(source.path, kMaxFile);
    if (!is_tiktoken(text)) {
      const SpModel model = parse_sp_model(text, what);
      Hasher hasher;
      hasher.update(text.data(), text.size());
      auto t = std::make_unique<HfTokenizer>(sp_parts(model, what), hasher.digest128().hex(), what, files);
      const auto id = [](i32 n) { return n >= 0 ? std::optional(n) : std::nullopt; };
      t->add_special({id(model.bos_id), id(model.eos_id), id(model.unk_id), id(model.pad_id)});
      return t;
    }
  }
  FolderReader reader(source, folder, what, is_file, kind, files);
  auto t = reader.read(config, source.path);
  const auto language = config.find("tgt_lang");
  if (source.kind == Kind::mapped && kind == "MarianTokenizer") {
    t->set_target(reader.read(config, join_path(folder, "target.spm")));
  } else if (has_languages(kind) && language != config.end() && language->is_string()) {
    json other = config;
    other["src_lang"] = *language;
    t->set_target(reader.read(other, source.path));
  }
  return t;
}

}  // namespace redco
