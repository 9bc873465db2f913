#include "tokenizers/load/tokenizer_spec.h"

#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/hash.h"
#include "tokenizers/load/hf_number.h"

namespace redco {
namespace {

using nlohmann::json;

constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxValues = 1'000'000;

// Builds the JSON values. model.vocab and model.merges of a tokenizer.json go directly into flat arrays: as
// JSON values, Llama 3's 280 thousand merges would take 80 MB.
class Reader : public nlohmann::json_sax<json> {
 public:
  // bare: the file's object is the vocabulary.
  Reader(std::string source, json& root, TokenizerSpec* spec, bool bare = false)
      : source_(std::move(source)), root_(root), spec_(spec), bare_(bare) {
    if (spec_ != nullptr) spec_->vocab.emplace();
  }

  bool null() override { return scalar(json(nullptr)); }
  bool boolean(bool v) override { return scalar(json(v)); }
  bool number_integer(number_integer_t v) override { return integer(v, json(v)); }
  bool number_unsigned(number_unsigned_t v) override {
    return integer(v > static_cast<u64>(INT64_MAX) ? INT64_MAX : static_cast<i64>(v), json(v));
  }
  bool number_float(number_float_t v, const string_t& text) override {
    if (mode_ == Mode::pieces && inner_) return score(hf_number(text));
    return scalar(json(v));
  }
  bool string(string_t& v) override {
    if (mode_ == Mode::merges) return merge(v);
    if (mode_ == Mode::pieces && inner_ && fields_++ == 0) {
      spec_->vocab->add(v, static_cast<i64>(spec_->scores.size()), vocab_where());
      return true;
    }
    return scalar(json(std::move(v)));
  }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override {
    if (mode_ != Mode::tree) fail_special("an object");
    if (bare_ ? frames_.empty() : at("model", "vocab")) {
      mode_ = Mode::vocab;
      has_vocab_ = true;
      return true;
    }
    return open(json::object());
  }
  bool key(string_t& k) override {
    if (mode_ == Mode::vocab) {
      token_ = std::move(k);
      return true;
    }
    Frame& f = frames_.back();
    if (!f.keys.insert(k).second)
      throw ContentsError("{}: the key '{}' appears twice in one object", source_, k.substr(0, 100));
    f.key = std::move(k);
    return true;
  }
  bool end_object() override {
    if (mode_ == Mode::vocab)
      mode_ = Mode::tree;
    else
      frames_.pop_back();
    return true;
  }
  bool start_array(std::size_t) override {
    if (mode_ == Mode::merges || mode_ == Mode::pieces) {
      if (inner_) fail_special("an array");
      inner_ = true;
      fields_ = 0;
      return true;
    }
    if (mode_ == Mode::vocab) fail_special("an array");
    if (at("model", "merges")) {
      mode_ = Mode::merges;
      spec_->has_merges = true;
      return true;
    }
    if (at("model", "vocab")) {
      mode_ = Mode::pieces;
      has_vocab_ = true;
      return true;
    }
    return open(json::array());
  }
  bool end_array() override {
    if (mode_ == Mode::tree) {
      frames_.pop_back();
    } else if (inner_) {
      if (fields_ != 2) fail_special("an array of another length");
      inner_ = false;
    } else {
      mode_ = Mode::tree;
    }
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    std::string why = e.what();
    if (const auto p = why.find("] "); p != std::string::npos) why = why.substr(p + 2);
    throw ContentsError("{}: invalid JSON at byte {}: {}", source_, position, why.substr(0, 300));
  }

  bool has_vocab() const { return has_vocab_; }

 private:
  enum class Mode { tree, vocab, pieces, merges };
  struct Frame {
    json* value;
    std::string key;
    std::unordered_set<std::string> keys;
  };

  std::string vocab_where() const { return bare_ ? source_ : source_ + ": model.vocab"; }

  bool at(std::string_view outer, std::string_view inner) const {
    return spec_ != nullptr && frames_.size() == 2 && frames_[0].key == outer && frames_[1].key == inner &&
           frames_[0].value->is_object() && frames_[1].value->is_object();
  }

  json& place(json v) {
    if (++values_ > kMaxValues)
      throw ContentsError("{}: more than {} JSON values in addition to the vocabulary", source_, kMaxValues);
    if (frames_.empty()) return root_ = std::move(v);
    json& parent = *frames_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(v));
      return parent.back();
    }
    return parent[frames_.back().key] = std::move(v);
  }

  bool open(json v) {
    if (frames_.size() >= kMaxDepth)
      throw ContentsError("{}: JSON nested deeper than {} levels", source_, kMaxDepth);
    frames_.push_back({&place(std::move(v)), {}, {}});
    return true;
  }

  bool scalar(json v) {
    if (mode_ != Mode::tree) fail_special(v.type_name());
    place(std::move(v));
    return true;
  }

  bool integer(i64 id, json v) {
    if (mode_ == Mode::vocab) {
      spec_->vocab->add(token_, id, vocab_where());
      return true;
    }
    if (mode_ == Mode::pieces && inner_) return score(v.get<double>());
    return scalar(std::move(v));
  }

  bool score(double v) {
    if (fields_++ != 1) fail_special("a number");
    spec_->scores.push_back(v);
    return true;
  }

  bool merge(std::string& v) {
    if (!inner_) {                                 // "left right"
      if (v.starts_with("#version")) return true;  // the first line of a merges.txt
      const auto space = v.find(' ');
      if (space == std::string::npos || v.find(' ', space + 1) != std::string::npos)
        throw ContentsError("{}: model.merges[{}]: '{}': expected two tokens separated by one space", source_,
                            spec_->merges.size(), v.substr(0, 100));
      spec_->merges.add(std::string_view(v).substr(0, space), std::string_view(v).substr(space + 1));
      return true;
    }
    if (fields_++ == 0)
      token_ = std::move(v);
    else if (fields_ == 2)
      spec_->merges.add(token_, v);
    return true;
  }

  [[noreturn]] void fail_special(std::string_view came) const {
    if (mode_ == Mode::merges)
      throw ContentsError("{}: model.merges[{}]: found {}, expected \"left right\" or [\"left\", \"right\"]",
                          source_, spec_->merges.size(), came);
    if (mode_ == Mode::vocab)
      throw ContentsError("{}['{}']: found {}, expected an id", vocab_where(), token_.substr(0, 100), came);
    throw ContentsError("{}: model.vocab[{}]: found {}, expected [\"piece\", score]", source_,
                        spec_->scores.size(), came);
  }

  std::string source_;
  json& root_;
  TokenizerSpec* spec_;
  bool bare_;
  std::vector<Frame> frames_;
  Mode mode_ = Mode::tree;
  bool inner_ = false;  // inside one merge or piece
  bool has_vocab_ = false;
  int fields_ = 0;  // its elements read so far
  std::string token_;
  std::size_t values_ = 0;
};

}  // namespace

TokenizerSpec::TokenizerSpec() : rest(std::make_unique<json>()) {}
TokenizerSpec::TokenizerSpec(TokenizerSpec&&) noexcept = default;
TokenizerSpec& TokenizerSpec::operator=(TokenizerSpec&&) noexcept = default;
TokenizerSpec::~TokenizerSpec() = default;

TokenizerSpec parse_tokenizer_json(std::string_view text, const std::string& source) {
  TokenizerSpec spec;
  spec.source = source;
  Reader reader(source, *spec.rest, &spec);
  json::sax_parse(text.begin(), text.end(), &reader);
  if (!spec.rest->is_object()) throw ContentsError("{}: the file is not a JSON object", source);
  if (!reader.has_vocab())
    throw ContentsError("{}: model.vocab is missing; is this a tokenizer.json?", source);
  spec.vocab->finish(source + ": model.vocab", !spec.scores.empty());
  return spec;
}

Vocab parse_vocab_json(std::string_view text, const std::string& source) {
  TokenizerSpec spec;
  Reader reader(source, *spec.rest, &spec, true);
  json::sax_parse(text.begin(), text.end(), &reader);
  if (!reader.has_vocab()) throw ContentsError("{}: expected a JSON object of tokens and ids", source);
  spec.vocab->finish(source);
  return std::move(*spec.vocab);
}

json parse_small_json(std::string_view text, const std::string& source) {
  json root;
  Reader reader(source, root, nullptr);
  json::sax_parse(text.begin(), text.end(), &reader);
  return root;
}

std::string TokenizerSpec::fingerprint() const {
  Hasher hasher;
  auto put = [&](std::string_view bytes) {
    const u64 n = bytes.size();
    hasher.update(&n, sizeof n);
    hasher.update(bytes.data(), bytes.size());
  };
  json pipeline = *rest;
  for (const char* inert : {"version", "truncation", "padding"}) pipeline.erase(inert);
  put(pipeline.dump(-1, ' ', false, json::error_handler_t::replace));
  for (i32 id = 0; id < vocab->size(); ++id)
    if (vocab->has(id)) {
      put(std::string_view(reinterpret_cast<const char*>(&id), sizeof id));
      put(vocab->token(id));
    }
  for (std::size_t k = 0; k < merges.size(); ++k) {
    put(merges.at(k).first);
    put(merges.at(k).second);
  }
  for (double v : scores) put(std::string_view(reinterpret_cast<const char*>(&v), sizeof v));
  return hasher.digest128().hex();
}

}  // namespace redco
