#include "tokenizers/hf_tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json_fields.h"
#include "base/utf8.h"
#include "tokenizers/models/make_model.h"

namespace redco {
namespace {

using nlohmann::json;

const json kNull = nullptr;

const json& or_null(const json* v) { return v == nullptr ? kNull : *v; }

// The numbers of tokens to keep of two sequences: Hugging Face's longest_first.
std::pair<std::size_t, std::size_t> longest_first(std::size_t n1, std::size_t n2, std::size_t limit) {
  if (n1 + n2 <= limit) return {n1, n2};
  const bool swap = n1 > n2;
  if (swap) std::swap(n1, n2);
  n2 = n1 > limit ? n1 : std::max(n1, limit - n1);
  if (n1 + n2 > limit) {
    n1 = limit / 2;
    n2 = n1 + limit % 2;
  }
  if (swap) std::swap(n1, n2);
  return {n1, n2};
}

}  // namespace

HfTokenizer::HfTokenizer(TokenizerSpec spec, std::string name,
                         std::function<std::vector<TokenizerFile>()> files)
    : name_(std::move(name)), fingerprint_(spec.fingerprint()), files_(std::move(files)) {
  JsonFields f(*spec.rest, spec.source);
  const std::string at = spec.source + ": ";
  // transformers sets truncation and padding for each call and ignores the file's.
  f.inert({"version", "truncation", "padding"});
  const json* added = f.find("added_tokens");
  const json* pre = f.find("pre_tokenizer");
  const json* post = f.find("post_processor");
  normalizer_ = make_normalizer(or_null(f.find("normalizer")), at + "normalizer");
  decoder_ = make_decoder(or_null(f.find("decoder")), at + "decoder");
  model_ = make_model(f.need("model"), at + "model", spec, ends_in_byte_level(or_null(pre)));
  pre_tokenizer_ = make_pre_tokenizer(or_null(pre), at + "pre_tokenizer", !model_->takes_bytes());
  added_ = AddedTokens(added, model_->vocab(), normalizer_.get(), at + "added_tokens");
  post_processor_ = std::make_unique<PostProcessor>(post, at + "post_processor", vocab_size());
  f.finish();
  if (vocab_size() == 0) throw ContentsError("{}: the vocabulary is empty", spec.source);

  if (pre_tokenizer_ != nullptr)
    cuts_ = model_->cuts_anywhere() && pre_tokenizer_->takes_any_bytes() ? kCutBoth : pre_tokenizer_->cuts();
  cuts_ &= added_.cuts();
  if (normalizer_ != nullptr) cuts_ &= normalizer_->cuts();
  looks_at_front_ = pre_tokenizer_ != nullptr && pre_tokenizer_->looks_at_front();
  any_bytes_ = normalizer_ == nullptr && pre_tokenizer_ != nullptr && pre_tokenizer_->takes_any_bytes() &&
               model_->takes_bytes() &&
               std::none_of(added_.all().begin(), added_.all().end(), [](const AddedToken& t) {
                 return t.single_word || t.lstrip || t.rstrip;  // these inspect characters
               });
}

HfTokenizer::HfTokenizer(TokenizerParts parts, std::string fingerprint, std::string name,
                         std::function<std::vector<TokenizerFile>()> files)
    : name_(std::move(name)),
      fingerprint_(std::move(fingerprint)),
      files_(std::move(files)),
      normalizer_(std::move(parts.normalizer)),
      model_(std::move(parts.model)),
      decoder_(std::move(parts.decoder)),
      added_(parts.added.is_null() ? nullptr : &parts.added, model_->vocab(), normalizer_.get(), name_) {
  post_processor_ = std::make_unique<PostProcessor>(&parts.post, name_, vocab_size());
  post_processor_->end_once(parts.end_once);
}

void HfTokenizer::set_target(std::unique_ptr<HfTokenizer> target) {
  Hasher hasher;
  for (const std::string* f : {&fingerprint_, &target->fingerprint_}) hasher.update(f->data(), f->size());
  fingerprint_ = hasher.digest128().hex();
  target_ = std::move(target);
}

void HfTokenizer::read_special(const json& config, const std::string& source) {
  JsonFields f(config, source);
  auto read = [&](const char* role) -> std::optional<i32> {
    const json* v = f.find(role);
    if (v == nullptr) return std::nullopt;
    std::string content;
    if (v->is_object()) {
      JsonFields token(*v, f.at(role));
      content = token.text("content");
    } else {
      content = f.text(role);
    }
    const auto id = token_to_id(content);
    if (!id)
      throw ContentsError(
          "{}: the token '{}' is not in the tokenizer '{}'; add it to the tokenizer, or name another token",
          f.at(role), content.substr(0, 100), name_);
    return id;
  };
  if (f.boolean("split_special_tokens", false))
    throw ContentsError("{}: true is not supported: special tokens in a text are always one token",
                        f.at("split_special_tokens"));
  const std::string side = f.text("truncation_side", "right");
  if (side != "right" && side != "left") unknown_type(f.at("truncation_side"), side, "right, left");
  truncate_left_ = side == "left";
  if (truncate_left_) {  // cached data depend on it
    Hasher hasher;
    hasher.update(fingerprint_.data(), fingerprint_.size());
    hasher.update(side.data(), side.size());
    fingerprint_ = hasher.digest128().hex();
  }
  special_.bos = read("bos_token");
  special_.eos = read("eos_token");
  special_.unk = read("unk_token");
  special_.pad = read("pad_token");
  special_.cls = read("cls_token");
  special_.sep = read("sep_token");
  special_.mask = read("mask_token");
}

void HfTokenizer::add_special(const SpecialIds& ids) {
  const auto add = [&](std::optional<i32>& to, const std::optional<i32>& id) {
    if (!to && id && id_to_token(*id)) to = id;
  };
  add(special_.bos, ids.bos);
  add(special_.eos, ids.eos);
  add(special_.pad, ids.pad);
  add(special_.unk, ids.unk);
}

std::unique_ptr<ModelScratch> HfTokenizer::borrow() const {
  std::lock_guard lock(mutex_);
  if (scratches_.empty()) return model_->make_scratch();
  auto s = std::move(scratches_.back());
  scratches_.pop_back();
  return s;
}

void HfTokenizer::give_back(std::unique_ptr<ModelScratch> s) const {
  std::lock_guard lock(mutex_);
  scratches_.push_back(std::move(s));
}

// first: whether `text` is at the start of the whole text.
void HfTokenizer::append_segment(std::string_view text, bool first, ModelScratch& scratch,
                                 std::vector<i32>& out, std::vector<std::string>* tokens) const {
  if (text.empty()) return;
  auto encode = [&](std::string_view piece) {
    tokens == nullptr ? model_->encode(piece, scratch, out) : model_->tokenize(piece, scratch, out, *tokens);
  };
  if (pre_tokenizer_ == nullptr)
    encode(text);
  else
    pre_tokenizer_->split_at(text, first, encode);
}

void HfTokenizer::append_plain(std::string_view text, std::vector<i32>& out,
                               std::vector<std::string>* tokens) const {
  if (!any_bytes_) {
    const std::size_t bad = find_invalid_utf8(text);
    if (bad != std::string_view::npos)
      throw ContentsError(
          "[tokenizer] byte {} (0x{:02X}) of the text is not UTF-8, which '{}' requires; convert the text "
          "(for example: iconv -f latin1 -t utf-8) or use the tokenizer `bytes`",
          bad, static_cast<unsigned char>(text[bad]), name_);
  }
  auto scratch = borrow();
  auto added = [&](const AddedSpan& s) {
    out.push_back(s.id);
    if (tokens != nullptr) tokens->emplace_back(s.text);
  };
  std::vector<AddedSpan> raw, inner;
  added_.split(text, false, raw);
  for (const AddedSpan& s : raw) {
    if (s.id >= 0) {
      added(s);
      continue;
    }
    std::string normalized;
    std::string_view part = s.text;
    const bool first = looks_at_front_ && part.data() == text.data() &&
                       (normalizer_ == nullptr || normalizer_->keeps_front(part));
    if (normalizer_ != nullptr && !normalizer_->unchanged(part))
      part = normalized = normalizer_->normalize(part);
    if (!added_.any(true)) {
      append_segment(part, first, *scratch, out, tokens);
      continue;
    }
    inner.clear();
    added_.split(part, true, inner);
    for (const AddedSpan& n : inner) {
      if (n.id >= 0)
        added(n);
      else
        append_segment(n.text, first && n.text.data() == part.data(), *scratch, out, tokens);
    }
  }
  give_back(std::move(scratch));
}

Tokenizer::Tokens HfTokenizer::tokenize(std::string_view text, bool add_special) const {
  std::vector<i32> plain;
  std::vector<std::string> texts;
  append_plain(text, plain, &texts);
  // The template is applied to placeholders (-1 - k for the k-th id), which then give both ids and texts.
  std::vector<i32> places(plain.size());
  for (std::size_t k = 0; k < places.size(); ++k) places[k] = -1 - static_cast<i32>(k);
  if (!plain.empty() && plain.back() == post_processor_->end_once()) places.back() = plain.back();
  Tokens out;
  post_processor_->apply(places, nullptr, add_special, out.ids, nullptr);
  for (i32& id : out.ids) {
    const std::size_t k = id < 0 ? static_cast<std::size_t>(-1 - id) : 0;
    out.tokens.push_back(id < 0 ? texts[k] : id_to_token(id).value_or(""));
    if (id < 0) id = plain[k];
  }
  return out;
}

std::vector<i32> HfTokenizer::encode(std::string_view text, bool add_special) const {
  std::vector<i32> plain;
  plain.reserve(text.size() / 3 + 8);
  append_plain(text, plain);
  if (!add_special || post_processor_->plain()) return plain;
  std::vector<i32> ids;
  post_processor_->apply(plain, nullptr, true, ids, nullptr);
  return ids;
}

void HfTokenizer::shorten(std::vector<i32>& ids, std::size_t n) const {
  if (ids.size() <= n) return;
  if (truncate_left_) ids.erase(ids.begin(), ids.end() - static_cast<std::ptrdiff_t>(n));
  ids.resize(n);
}

Encoding HfTokenizer::encode_truncated(std::string_view text, i64 max_length, bool add_special) const {
  std::vector<i32> a;
  append_plain(text, a);
  const i64 room = max_length - (add_special ? post_processor_->n_special(false) : 0);
  if (room < 0)
    throw UsageError("[tokenizer] max_length={} leaves no room for the {} special tokens of '{}'", max_length,
                     post_processor_->n_special(false), name_);
  shorten(a, static_cast<std::size_t>(room));
  Encoding e;
  post_processor_->apply(a, nullptr, add_special, e.ids, &e.type_ids);
  return e;
}

Encoding HfTokenizer::encode_pair(std::string_view text, std::string_view pair, std::optional<i64> max_length,
                                  bool add_special) const {
  std::vector<i32> a, b;
  append_plain(text, a);
  append_plain(pair, b);
  if (max_length) {
    const i64 room = *max_length - (add_special ? post_processor_->n_special(true) : 0);
    if (room < 0)
      throw UsageError("[tokenizer] max_length={} leaves no room for the {} special tokens of '{}'",
                       *max_length, post_processor_->n_special(true), name_);
    const auto [n1, n2] = longest_first(a.size(), b.size(), static_cast<std::size_t>(room));
    shorten(a, n1);
    shorten(b, n2);
  }
  Encoding e;
  post_processor_->apply(a, &b, add_special, e.ids, &e.type_ids);
  return e;
}

std::vector<std::string> HfTokenizer::tokens(std::span<const i32> ids) const {
  std::vector<std::string> out;
  out.reserve(ids.size());
  for (i32 id : ids) {
    auto token = id_to_token(id);
    REDCO_CHECK(token.has_value(), "id {} has no token in '{}'", id, name_);
    out.push_back(std::move(*token));
  }
  return out;
}

std::string HfTokenizer::decode(std::span<const i32> ids, bool skip_special) const {
  std::vector<std::string> tokens;
  for (i32 id : ids) {
    auto token = id_to_token(id);
    // By its text, as in Hugging Face: all ids of a special text are special.
    if (token && !(skip_special && added_.is_special(*token))) tokens.push_back(std::move(*token));
  }
  const bool spaces = decoder_ == nullptr;
  if (!spaces) tokens = decoder_->decode(std::move(tokens));
  std::string text;
  for (std::size_t k = 0; k < tokens.size(); ++k) {
    if (spaces && k > 0) text += ' ';
    text += tokens[k];
  }
  return text;
}

i32 HfTokenizer::vocab_size() const { return std::max(model_->vocab().size(), added_.size()); }

std::optional<i32> HfTokenizer::token_to_id(std::string_view token) const {
  i32 id = added_.find(token);
  if (id < 0) id = model_->vocab().find(token);
  return id < 0 ? std::nullopt : std::optional(id);
}

std::optional<std::string> HfTokenizer::id_to_token(i32 id) const {
  if (const AddedToken* t = added_.find(id)) return t->pattern;
  if (model_->vocab().has(id)) return std::string(model_->vocab().token(id));
  return std::nullopt;
}

std::optional<std::size_t> HfTokenizer::last_cut(std::string_view text) const {
  if (cuts_ == kNoCuts) return std::nullopt;
  for (std::size_t p = text.size(); p-- > 1;) {
    const char before = text[p - 1];
    if (((text[p] == ' ' && (cuts_ & kCutSpaces)) || (text[p] == '\n' && (cuts_ & kCutNewlines))) &&
        ((before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z') ||
         (before >= '0' && before <= '9')))
      return p;
  }
  return std::nullopt;
}

}  // namespace redco
