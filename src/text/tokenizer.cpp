#include "text/tokenizer.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "text/hf_tokenizer.h"
#include "text/tokenizer_spec.h"

namespace redco {
namespace {

using nlohmann::json;

constexpr i64 kMaxFile = i64{256} << 20;  // a tokenizer.json; the largest known has 35 MB
constexpr i64 kMaxSmallFile = i64{16} << 20;

// What a Hugging Face folder may hold of a tokenizer.
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

// The files of `folder` as they are now; files() later checks that they still are.
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
          "{}: the file has changed since the tokenizer was loaded; put it back, or start again", s.path);
  }
  return files;
}

json read_small(const std::string& path) {
  if (!exists(path)) return json::object();
  json v = parse_small_json(read_file(path, kMaxSmallFile), path);
  if (!v.is_object()) throw ContentsError("{}: the file holds no JSON object", path);
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

// Tokens that the configuration adds but tokenizer.json lacks would get ids from transformers that redco
// doesn't know of.
void check_added(const json& config, const std::string& path, const HfTokenizer& t) {
  const auto list = config.find("added_tokens_decoder");
  if (list == config.end() || !list->is_object()) return;
  for (const auto& [id, token] : list->items()) {
    const auto content = token.is_object() ? token.find("content") : token.end();
    if (!token.is_object() || content == token.end() || !content->is_string())
      throw ContentsError("{}: added_tokens_decoder['{}'] has no content", path, id.substr(0, 50));
    const auto known = t.token_to_id(content->get<std::string>());
    if (!known || std::to_string(*known) != id)
      throw ContentsError("{}: added_tokens_decoder gives '{}' the id {}, tokenizer.json {}", path,
                          content->get<std::string>().substr(0, 100), id.substr(0, 50),
                          known ? std::to_string(*known) : "none");
  }
}

}  // namespace

void Tokenizer::save(const std::string& folder) const {
  for (const TokenizerFile& f : files()) write_file_durable(join_path(folder, f.name), f.contents);
}

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& what) {
  if (what == "bytes") return make_bytes();
  if (what.empty() || !exists(what))
    throw UsageError(
        "[tokenizer] '{}' doesn't exist; give a folder with tokenizer.json, that file, or `bytes`", what);
  const bool is_file = !is_folder(what);
  const std::string folder = is_file ? parent_path(what) : what;
  const std::string path = is_file ? what : join_path(folder, "tokenizer.json");
  const std::string config_path = join_path(folder, "tokenizer_config.json");
  const std::string map_path = join_path(folder, "special_tokens_map.json");
  const json config = read_small(config_path);

  std::unique_ptr<HfTokenizer> t;
  std::vector<Seen> seen = see(folder);
  if (is_file &&
      file_name(what) != "tokenizer.json") {  // the file by another name is saved under the usual one
    std::erase_if(seen, [](const Seen& s) { return s.name == "tokenizer.json"; });
    seen.push_back({"tokenizer.json", what, hash64(read_file(what, kMaxFile))});
  }
  auto files = [seen] { return read_again(seen); };
  if (exists(path)) {
    t = std::make_unique<HfTokenizer>(parse_tokenizer_json(read_file(path, kMaxFile), path), what, files);
    check_added(config, config_path, *t);
  } else {
    const std::string vocab = join_path(folder, "vocab.json"), merges = join_path(folder, "merges.txt");
    for (const auto& p : {vocab, merges})
      if (!exists(p))
        throw UsageError(
            "[tokenizer] {} has neither tokenizer.json nor vocab.json with merges.txt ({} is missing)",
            folder, file_name(p));
    t = std::make_unique<HfTokenizer>(
        read_legacy_bpe(read_file(vocab, kMaxFile), read_file(merges, kMaxFile),
                        read_small(join_path(folder, "added_tokens.json")), config, folder),
        what, files);
  }
  if (!config.empty() || !exists(map_path))
    t->read_special(config, config_path);
  else
    t->read_special(read_small(map_path), map_path);
  return t;
}

}  // namespace redco
