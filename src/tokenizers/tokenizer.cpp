#include "tokenizers/tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "tokenizers/hf_tokenizer.h"
#include "tokenizers/load/special_tokens.h"
#include "tokenizers/load/tokenizer_spec.h"

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

enum class Kind { json, vocab_json, sentencepiece, vocab_txt };

// The file to load, and the name to save it under.
struct Source {
  Kind kind;
  std::string path, name;
};

Source source_of(const std::string& what, const std::string& folder, bool is_file) {
  static constexpr std::pair<const char*, Kind> kSources[] = {
      {"tokenizer.json", Kind::json},
      {"vocab.json", Kind::vocab_json},
      {"tokenizer.model", Kind::sentencepiece},
      {"spiece.model", Kind::sentencepiece},
      {"sentencepiece.bpe.model", Kind::sentencepiece},
      {"vocab.txt", Kind::vocab_txt}};
  if (is_file) {
    if (what.ends_with(".model")) {
      const std::string name = file_name(what);
      const bool usual = name == "spiece.model" || name == "sentencepiece.bpe.model";
      return {Kind::sentencepiece, what, usual ? name : "tokenizer.model"};
    }
    if (what.ends_with(".txt")) return {Kind::vocab_txt, what, "vocab.txt"};
    return {Kind::json, what, "tokenizer.json"};
  }
  for (const auto& [name, kind] : kSources) {
    const std::string path = join_path(folder, name);
    if (!exists(path)) continue;
    if (kind == Kind::vocab_json && !exists(join_path(folder, "merges.txt")))
      throw UsageError("[tokenizer] {} has vocab.json, but merges.txt is missing", folder);
    return {kind, path, name};
  }
  throw UsageError(
      "[tokenizer] {} has none of tokenizer.json, vocab.json with merges.txt, tokenizer.model, spiece.model, "
      "sentencepiece.bpe.model and vocab.txt",
      folder);
}

}  // namespace

void Tokenizer::save(const std::string& folder) const {
  for (const TokenizerFile& f : files()) write_file_durable(join_path(folder, f.name), f.contents);
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
  const Source source = source_of(what, folder, is_file);
  const std::string config_path = join_path(folder, "tokenizer_config.json");

  std::vector<Seen> seen = see(folder);
  const bool usual =
      std::any_of(seen.begin(), seen.end(), [&](const Seen& s) { return s.path == source.path; });
  if (is_file && !usual) {  // a file with another name is saved under the usual name
    std::erase_if(seen, [&](const Seen& s) { return s.name == source.name; });
    seen.push_back({source.name, what, hash64(read_file(what, kMaxFile))});
  }
  auto files = [seen] { return read_again(seen); };
  const std::string text = read_file(source.path, kMaxFile);
  if (is_file && source.kind == Kind::sentencepiece) {
    Hasher hasher;
    hasher.update(text.data(), text.size());
    return std::make_unique<HfTokenizer>(parse_sp_model(text, what), hasher.digest128().hex(), what, files);
  }

  json config = read_small(config_path);
  std::unique_ptr<HfTokenizer> t;
  auto make = [&](TokenizerSpec spec, bool complete) {
    for (const auto& [role, token] : spec.roles)
      if (!config.contains(role)) config[role] = token;
    complete_roles(config, folder, spec);
    if (complete) add_named_tokens(spec, config, folder);
    t = std::make_unique<HfTokenizer>(std::move(spec), what, files);
  };
  if (source.kind == Kind::json) {
    make(parse_tokenizer_json(text, source.path), true);
  } else if (source.kind == Kind::vocab_json) {
    make(read_legacy_bpe(text, read_file(join_path(folder, "merges.txt"), kMaxFile),
                         read_small(join_path(folder, "added_tokens.json")), config, folder),
         true);
  } else if (source.kind == Kind::vocab_txt) {
    add_older_files(config, folder);
    TokenizerSpec spec = read_vocab_txt(text, config, source.path);
    // Any text file can be read as vocab.txt; one that is none lacks this token.
    if (is_file && spec.vocab->find(spec.roles["unk_token"]) < 0)
      throw ContentsError(
          "[tokenizer] {} has no line {}; expected a vocab.txt with one token per line, a tokenizer.json or "
          "a SentencePiece .model",
          what, spec.roles["unk_token"]);
    make(std::move(spec), false);
  } else {
    add_older_files(config, folder);
    const json model_config = read_small(join_path(folder, "config.json"));
    const auto type = model_config.find("model_type");
    const bool named = type != model_config.end() && type->is_string();
    make(read_sp_folder(parse_sp_model(text, source.path), config, named ? type->get<std::string>() : "",
                        folder),
         false);
  }
  t->read_special(config, config_path);
  t->add_special(model_config_ids(config, folder));
  return t;
}

}  // namespace redco
