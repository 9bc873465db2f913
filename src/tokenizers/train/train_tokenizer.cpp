#include "tokenizers/train/train_tokenizer.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/utf8.h"
#include "base/words.h"
#include "tokenizers/models/vocab.h"
#include "tokenizers/pre_tokenizers/pre_tokenizers.h"
#include "tokenizers/pre_tokenizers/word_splits.h"
#include "tokenizers/train/train_bpe.h"
#include "tokenizers/train/train_text.h"
#include "tokenizers/train/train_unigram.h"

namespace redco {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kSpace = "\u2581";  // SentencePiece's replacement of a space

void check(const TokenizerTraining& o) {
  if (o.files.empty()) throw UsageError("[tokenizer] no training files are given");
  if (o.output.empty()) throw UsageError("[tokenizer] --output is empty; give a folder");
  if (o.vocab_size < 1 || o.vocab_size > Vocab::kMaxId)
    throw UsageError("[tokenizer] --vocab-size is {}; expected 1 to {}", o.vocab_size, Vocab::kMaxId);
  if (o.min_frequency < 1)
    throw UsageError("[tokenizer] --min-frequency is {}; expected 1 or more", o.min_frequency);
  std::unordered_set<std::string> seen;
  for (const std::string& s : o.special) {
    if (s.empty() || s.size() > 1024)
      throw UsageError("[tokenizer] a special token has {} bytes; expected 1 to 1024", s.size());
    if (find_invalid_utf8(s) != std::string::npos)
      throw UsageError("[tokenizer] the special token '{}' is not UTF-8", utf8_lossy(s));
    if (!seen.insert(s).second) throw UsageError("[tokenizer] the special token '{}' is given twice", s);
  }
}

Json byte_level(bool use_regex) {
  return {
      {"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", use_regex}};
}

Json split(const char* kind, std::string_view pattern) {
  return {{"type", "Split"},
          {"pattern", {{kind, std::string(pattern)}}},
          {"behavior", "Isolated"},
          {"invert", false}};
}

Json sequence(const char* list, std::initializer_list<Json> parts) {
  Json out = {{"type", "Sequence"}};
  out[list] = Json::array();
  for (const Json& p : parts) out[list].push_back(p);
  return out;
}

Json pre_tokenizer_of(const TokenizerTraining& o) {
  if (o.model == TokenizerTraining::Model::unigram)
    return sequence(
        "pretokenizers",
        {split("Regex", "\\n+"),
         {{"type", "Metaspace"}, {"replacement", kSpace}, {"prepend_scheme", "never"}, {"split", true}}});
  if (o.split == "gpt2") return byte_level(true);
  for (const auto& [name, kind] :
       {std::pair("llama3", WordSplit::llama3), std::pair("qwen", WordSplit::qwen)})
    if (o.split == name)
      return sequence("pretokenizers", {split("Regex", pattern_of(kind)), byte_level(false)});
  throw UsageError("[tokenizer] --split is {}; expected gpt2, llama3 or qwen", o.split);
}

// Progress bars of reading and learning.
class Reports {
 public:
  TextProgress reading() {
    return [this](i64 done, i64 total) {
      if (!bar_) bar_.emplace("tokenizer: reading", total);
      bar_->update(done, [&] { return Progress::Fields{{"", human_bytes(static_cast<u64>(done))}}; });
    };
  }
  void begin(const char* label, i64 total) { bar_.emplace(label, total); }
  void end() { bar_.reset(); }
  std::function<void(i64)> learning() {
    return [this](i64 done) {
      bar_->update(done, [&] {
        return Progress::Fields{{"", human_count(static_cast<double>(done)) + " tokens"}};
      });
    };
  }

 private:
  std::optional<Progress> bar_;
};

// BERT's template if [CLS] and [SEP] are special tokens: [CLS] text [SEP], and [CLS] text [SEP] pair [SEP]
// with type ids 0 and 1.
Json bert_template(const std::vector<std::string>& special) {
  Json tokens = Json::object();
  for (const char* name : {"[CLS]", "[SEP]"}) {
    const auto it = std::find(special.begin(), special.end(), name);
    if (it == special.end()) return nullptr;
    tokens[name] = {{"id", name}, {"ids", {it - special.begin()}}, {"tokens", {name}}};
  }
  const auto part = [](const char* kind, const char* id, int type) -> Json {
    return {{kind, {{"id", id}, {"type_id", type}}}};
  };
  const Json cls = part("SpecialToken", "[CLS]", 0), a = part("Sequence", "A", 0);
  const Json end = part("SpecialToken", "[SEP]", 0), b = part("Sequence", "B", 1),
             end_b = part("SpecialToken", "[SEP]", 1);
  return {{"type", "TemplateProcessing"},
          {"single", {cls, a, end}},
          {"pair", {cls, a, end, b, end_b}},
          {"special_tokens", tokens}};
}

struct Made {
  Json model;
  Json decoder, post_processor;
  u64 n_tokens = 0;
};

Made make_bpe(const WordCounts& words, const TokenizerTraining& o, Reports& reports) {
  BpeTraining t;
  t.vocab_size = static_cast<i32>(o.vocab_size);
  t.min_frequency = o.min_frequency;
  t.special = o.special;
  reports.begin("tokenizer: merging", o.vocab_size);
  const LearnedBpe learned = learn_bpe(words, t, reports.learning());
  reports.end();
  Json vocab = Json::object(), merges = Json::array();
  // Appends to the underlying vector: inserting by key would compare with all other keys.
  auto& entries = vocab.get_ref<Json::object_t&>();
  for (std::size_t id = 0; id < learned.tokens.size(); ++id)
    static_cast<std::vector<std::pair<const std::string, Json>>&>(entries).emplace_back(learned.tokens[id],
                                                                                        id);
  for (const auto& [left, right] : learned.merges) merges.push_back(left + " " + right);
  Made m;
  m.model = {{"type", "BPE"},
             {"dropout", nullptr},
             {"unk_token", nullptr},
             {"continuing_subword_prefix", nullptr},
             {"end_of_word_suffix", nullptr},
             {"fuse_unk", false},
             {"byte_fallback", false},
             {"ignore_merges", false}};
  m.model["vocab"] = std::move(vocab);
  m.model["merges"] = std::move(merges);
  m.decoder = byte_level(true);
  m.post_processor = byte_level(true);
  m.n_tokens = learned.n_tokens;
  return m;
}

Made make_unigram(const WordCounts& words, const TokenizerTraining& o, Reports& reports) {
  const i64 n_bytes = o.byte_fallback ? 256 : 0;
  const i64 n_pieces = o.vocab_size - static_cast<i64>(o.special.size()) - n_bytes;
  if (n_pieces < 1)
    throw UsageError(
        "[tokenizer] --vocab-size {} is too small for the special tokens ({}){}; set at least {}{}",
        o.vocab_size, o.special.size(), o.byte_fallback ? " and 256 bytes" : "",
        static_cast<i64>(o.special.size()) + n_bytes + 1,
        o.byte_fallback ? ", or omit the bytes with --no-byte-fallback" : "");
  UnigramTraining t;
  t.n_pieces = n_pieces;
  t.min_frequency = o.min_frequency;
  t.threads = o.threads;
  // The text "<0x0A>" must not be encoded as the byte token <0x0A>. So its characters are pieces, with higher
  // scores.
  if (o.byte_fallback) t.always = "<0x123456789ABCDEF>";
  reports.begin("tokenizer: pruning", 0);
  const LearnedUnigram learned = learn_unigram(words, t, reports.learning());
  reports.end();
  Json vocab = Json::array();
  for (const std::string& s : o.special) vocab.push_back({s, 0.0});
  const double never = 7 * std::floor(learned.min_score);  // less than the sum of six scores of any pieces
  std::unordered_set<std::string> taken(o.special.begin(), o.special.end());
  for (int b = 0; b < n_bytes; ++b)
    if (const std::string token = fmt::format("<0x{:02X}>", b); taken.insert(token).second)
      vocab.push_back({token, never});
  for (const auto& [piece, score] : learned.pieces)
    if (!taken.count(piece)) vocab.push_back({piece, score});
  const auto unk = std::find(o.special.begin(), o.special.end(), "<unk>") - o.special.begin();
  Made m;
  m.model = {{"type", "Unigram"}, {"unk_id", unk}};
  m.model["vocab"] = std::move(vocab);
  m.model["byte_fallback"] = o.byte_fallback;
  m.decoder =
      sequence("decoders", {{{"type", "Replace"}, {"pattern", {{"String", kSpace}}}, {"content", " "}},
                            {{"type", "ByteFallback"}},
                            {{"type", "Fuse"}}});
  m.n_tokens = learned.n_tokens;
  return m;
}

// tokenizer_config.json: the class in transformers, and the roles of special tokens.
Json config_of(const std::vector<std::string>& special) {
  struct Role {
    const char* key;
    std::vector<const char*> names;  // the first existing name gets the role
  };
  static const Role kRoles[] = {
      {"bos_token", {"<s>", "<bos>", "[BOS]", "<|begin_of_text|>", "<|startoftext|>", "<|endoftext|>"}},
      {"eos_token", {"</s>", "<eos>", "[EOS]", "<|end_of_text|>", "<|endoftext|>", "<|im_end|>"}},
      {"unk_token", {"<unk>", "[UNK]"}},
      {"pad_token", {"<pad>", "[PAD]", "<|pad|>"}},
      {"cls_token", {"[CLS]", "<cls>"}},
      {"sep_token", {"[SEP]", "<sep>"}},
      {"mask_token", {"<mask>", "[MASK]"}}};
  Json config = {{"tokenizer_class", "PreTrainedTokenizerFast"}, {"clean_up_tokenization_spaces", false}};
  for (const Role& r : kRoles)
    for (const char* name : r.names)
      if (std::find(special.begin(), special.end(), name) != special.end()) {
        config[r.key] = name;
        break;
      }
  config["model_max_length"] = 1'000'000'000;
  return config;
}

}  // namespace

TrainedTokenizer train_tokenizer(const TokenizerTraining& options) {
  TokenizerTraining o = options;
  check(o);
  const bool unigram = o.model == TokenizerTraining::Model::unigram;
  if (o.threads <= 0) o.threads = worker_threads();
  if (unigram && std::find(o.special.begin(), o.special.end(), "<unk>") == o.special.end())
    o.special.insert(o.special.begin(), "<unk>");
  const Json pre_tokenizer = pre_tokenizer_of(o);
  const auto splitter =
      make_pre_tokenizer(nlohmann::json::parse(pre_tokenizer.dump()), "pre_tokenizer", false);
  make_dirs(o.output);
  DurableFile file = DurableFile::create(join_path(o.output, "tokenizer.json"));

  Reports reports;
  const WordCounts words = count_words(o.files, *splitter, o.threads, reports.reading());
  reports.end();
  if (words.size() == 0)
    throw ContentsError("[tokenizer] {}{}: no text in the training files", o.files.front(),
                        o.files.size() > 1 ? fmt::format(" and {} more files", o.files.size() - 1) : "");
  Made made = unigram ? make_unigram(words, o, reports) : make_bpe(words, o, reports);
  Json added = Json::array();
  for (std::size_t id = 0; id < o.special.size(); ++id)
    added.push_back({{"id", id},
                     {"content", o.special[id]},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  const auto n_vocab = static_cast<i32>(made.model["vocab"].size());
  Json root = {{"version", "1.0"}, {"truncation", nullptr}, {"padding", nullptr}};
  root["added_tokens"] = std::move(added);
  root["normalizer"] = nullptr;
  root["pre_tokenizer"] = pre_tokenizer;
  const Json around = bert_template(o.special);
  root["post_processor"] = around.is_null() ? made.post_processor : around;
  root["decoder"] = made.decoder;
  root["model"] = std::move(made.model);
  file.append(root.dump(2) + "\n");
  file.commit();
  write_file_durable(join_path(o.output, "tokenizer_config.json"), config_of(o.special).dump(2) + "\n");
  const double per_token =
      made.n_tokens == 0 ? 0 : static_cast<double>(words.text_bytes) / static_cast<double>(made.n_tokens);
  return {n_vocab, words.text_bytes, std::accumulate(words.counts.begin(), words.counts.end(), u64{0}),
          words.size(), per_token};
}

}  // namespace redco
