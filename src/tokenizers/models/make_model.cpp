#include "tokenizers/models/make_model.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_fields.h"
#include "base/log_once.h"
#include "tokenizers/models/bpe.h"
#include "tokenizers/models/unigram.h"
#include "tokenizers/models/word_piece.h"

namespace redco {
namespace {

using nlohmann::json;

void expect_object(const TokenizerSpec& spec, const char* model, const std::string& where) {
  if (!spec.scores.empty())
    throw ContentsError("{}.vocab: the vocabulary of {} must be an object of tokens and ids", where, model);
}

std::unique_ptr<TokenModel> make_bpe(JsonFields& f, TokenizerSpec& spec, bool byte_level) {
  expect_object(spec, "BPE", f.where());
  if (const json* dropout = f.find("dropout"); dropout != nullptr && *dropout != 0) {
    if (!dropout->is_number())
      throw ContentsError("{}.dropout: found {}, expected a number or null", f.where(),
                          dropout->dump().substr(0, 50));
    log_once(LogLevel::info, fmt::format("{}.dropout: {} is ignored; all merges apply", f.where(),
                                         dropout->dump().substr(0, 50)));
  }
  if (!spec.has_merges || f.find("merges") != nullptr)
    throw ContentsError("{}.merges: expected a list of merges", f.where());
  BpeOptions o;
  if (f.find("unk_token") != nullptr) o.unk_token = f.text("unk_token");
  o.continuing_subword_prefix = f.text("continuing_subword_prefix", "");
  o.end_of_word_suffix = f.text("end_of_word_suffix", "");
  o.fuse_unk = f.boolean("fuse_unk", false);
  o.byte_fallback = f.boolean("byte_fallback", false);
  o.ignore_merges = f.boolean("ignore_merges", false);
  o.byte_level = byte_level;
  return std::make_unique<Bpe>(std::move(*spec.vocab), spec.merges, std::move(o), f.where());
}

std::unique_ptr<TokenModel> make_unigram(JsonFields& f, TokenizerSpec& spec) {
  if (spec.scores.size() != static_cast<std::size_t>(spec.vocab->count()))
    throw ContentsError("{}.vocab: the vocabulary of Unigram must be a list of [piece, score]", f.where());
  std::optional<i32> unk;
  if (f.find("unk_id") != nullptr) {
    const i64 id = f.integer("unk_id");
    if (id < 0 || id >= spec.vocab->size())
      throw ContentsError("{}: {} is not an id; expected an integer from 0 to below {}", f.at("unk_id"), id,
                          spec.vocab->size());
    unk = static_cast<i32>(id);
  }
  const bool byte_fallback = f.boolean("byte_fallback", false);
  return std::make_unique<Unigram>(std::move(*spec.vocab), std::move(spec.scores), unk, byte_fallback);
}

std::unique_ptr<TokenModel> make_word_piece(JsonFields& f, TokenizerSpec& spec) {
  expect_object(spec, "WordPiece", f.where());
  const std::string unk = f.text("unk_token"), prefix = f.text("continuing_subword_prefix");
  const i64 longest = f.integer("max_input_chars_per_word");
  if (longest < 0)
    throw ContentsError("{}: found {}, expected 0 or more", f.at("max_input_chars_per_word"), longest);
  return std::make_unique<WordPiece>(std::move(*spec.vocab), unk, prefix, longest);
}

std::unique_ptr<TokenModel> make_word_level(JsonFields& f, TokenizerSpec& spec) {
  expect_object(spec, "WordLevel", f.where());
  return std::make_unique<WordLevel>(std::move(*spec.vocab), f.text("unk_token"));
}

}  // namespace

std::unique_ptr<TokenModel> make_model(const json& value, const std::string& where, TokenizerSpec& spec,
                                       bool byte_level) {
  JsonFields f(value, where);
  const char* guess = f.find("unk_id") != nullptr || !spec.scores.empty() ? "Unigram"
                      : f.find("max_input_chars_per_word") != nullptr     ? "WordPiece"
                      : spec.has_merges || f.find("unk_token") == nullptr ? "BPE"
                                                                          : "WordLevel";
  const std::string type = f.text("type", guess);
  // The lists are in the spec. A value that remains in these fields has the wrong type.
  if (f.find("vocab") != nullptr)
    throw ContentsError("{}.vocab: expected an object of tokens and ids, or a list of pieces", where);
  std::unique_ptr<TokenModel> made;
  if (type == "BPE")
    made = make_bpe(f, spec, byte_level);
  else if (type == "Unigram")
    made = make_unigram(f, spec);
  else if (type == "WordPiece")
    made = make_word_piece(f, spec);
  else if (type == "WordLevel")
    made = make_word_level(f, spec);
  else
    unknown_type(where, type, "BPE, Unigram, WordPiece, WordLevel");
  // Some converters write fields of other models. They have no effect.
  f.inert({"unk_id", "unk_token", "max_input_chars_per_word", "continuing_subword_prefix", "merges"});
  f.finish();
  return made;
}

}  // namespace redco
