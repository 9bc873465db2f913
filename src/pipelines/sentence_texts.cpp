#include "pipelines/sentence_texts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/log_once.h"
#include "base/words.h"
#include "data/text/field_hints.h"
#include "pipelines/pooling.h"
#include "pipelines/record_keys.h"
#include "unicode/python_text.h"

namespace redco {

namespace {

constexpr const char *kAnchor = "anchor", *kPositive = "positive", *kNegative = "negative";

std::string required_key(const Record& r, const std::optional<std::string>& named, const char* field,
                         std::initializer_list<const char*> known) {
  const std::string key = key_of(r, named, known);
  if (!key.empty()) return key;
  if (named) r.fail(fmt::format("no \"{}\", which data.fields.{} names", *named, field));
  r.fail(fmt::format("no {}; expected one of the keys {}, or another one that data.fields.{} names", field,
                     fmt::join(known, ", "), field));
}

// The text, or the texts of a list.
std::vector<std::string> texts_of(const Record& r, const std::string& key) {
  const std::string value = r.json(key);
  return value.starts_with('[') ? r.texts(key) : std::vector{r.text(key)};
}

std::vector<std::string> negatives_of(const Record& r, const std::optional<std::string>& named) {
  const std::string key = key_of(r, named, {"negative", "neg", "negatives", "3"});
  if (key == "3" && !named && r.text(key).find_first_not_of("0123456789.-") == std::string::npos)
    r.fail(
        "column 3 is a number. data.fields='{anchor: \"1\", positive: \"2\", score: \"3\"}' reads pairs with a score");
  if (!key.empty()) return texts_of(r, key);
  std::vector<std::string> out;
  if (named) return out;
  for (int k = r.has("negative_0") ? 0 : 1;; ++k) {
    const std::string numbered = fmt::format("negative_{}", k);
    if (!r.has(numbered)) return out;
    out.push_back(r.text(numbered));
  }
}

// The first selected passage of MS MARCO's form; {}: the record has another form.
std::vector<std::string> selected_passage(const Record& r) {
  const auto passages = ranked_passages(r);
  if (!passages) return {};
  const auto one = std::ranges::find(passages->selected, 1.F);
  if (one == passages->selected.end()) r.fail("none of the passages is selected");
  log_once(LogLevel::info,
           "[data] \"passages\": the positive is the first selected passage, without hard negatives; "
           "pipeline reranking reads all passages");
  return {passages->texts[static_cast<std::size_t>(one - passages->selected.begin())]};
}

class SentenceDataset : public Dataset {
 public:
  explicit SentenceDataset(std::shared_ptr<const Dataset> examples) : examples_(std::move(examples)) {
    const Example e = examples_->get(0);
    while (e.ids.count(fmt::format("{}.{}", kNegative, negatives_))) ++negatives_;
    scored_ = e.values.count("score") > 0;
  }
  i64 size() const override { return examples_->size(); }
  i64 length(i64 i) const override { return examples_->length(i); }
  i64 target_length(i64) const override { return scored_ ? 0 : 1 + negatives_; }
  Example get(i64 i) const override { return examples_->get(i); }
  std::string fingerprint() const override { return examples_->fingerprint(); }
  Reading reading() const override { return examples_->reading(); }
  std::string describe() const override {
    const std::string what = scored_           ? "pairs with a score"
                             : negatives_ == 0 ? "pairs"
                                               : "pairs with " + counted(negatives_, "hard negative");
    const std::string more = examples_->describe();
    return fmt::format("{} {}{}{}", size(), what, more.empty() ? "" : "; ", more);
  }

 private:
  std::shared_ptr<const Dataset> examples_;
  i64 negatives_ = 0;
  bool scored_ = false;
};

}  // namespace

void SentenceTexts::add(Example& e, const std::string& name, const std::string& prompt,
                        const std::string& text) const {
  const auto shown = [&](const std::string& s) { return lower_case_ ? python_lower(s) : s; };
  std::vector<i32> ids = tokenizer_.encode_truncated(shown(prompt + text), max_length_).ids;
  if (ids.empty()) throw ContentsError("the {} has no tokens after tokenization", name);
  if (!include_prompt_ && !prompt.empty()) {
    // As sentence-transformers: the prompt's tokens, without a special token at their end.
    std::vector<i32> own = tokenizer_.encode(shown(prompt));
    if (!own.empty() && tokenizer_.is_special(own.back())) own.pop_back();
    e.ids[name + ".skip"] = {static_cast<i32>(std::min(own.size(), ids.size()))};
  }
  e.ids[name] = std::move(ids);
}

Example SentenceTexts::read(const Record& r) const {
  const std::string anchor = r.text(required_key(
      r, fields_.anchor, kAnchor, {"anchor", "query", "question", "sentence1", "text1", "source", "1"}));
  std::string key = "passages";
  std::vector<std::string> positives = fields_.positive ? std::vector<std::string>() : selected_passage(r);
  if (positives.empty()) {
    key = required_key(
        r, fields_.positive, kPositive,
        {"positive", "pos", "document", "passage", "answer", "sentence2", "text2", "target", "2"});
    positives = texts_of(r, key);
  }
  if (positives.size() != 1)
    r.fail(fmt::format("\"{}\" has {}; expected one. Write a line for each of them", key,
                       counted(positives.size(), "text")));
  const std::vector<std::string> negatives = negatives_of(r, fields_.negative);
  const std::string score = key_of(r, fields_.score, {"score", "similarity", "label"});
  if (!score.empty() && !negatives.empty())
    r.fail(
        fmt::format("both a score (\"{}\") and negatives; expected pairs with a score, or pairs with "
                    "negatives. data.fields.score or data.fields.negative can name another key",
                    score));
  Example e;
  try {
    add(e, kAnchor, score.empty() ? prompts_.query : prompts_.plain, anchor);
    add(e, kPositive, score.empty() ? prompts_.document : prompts_.plain, positives[0]);
    for (size_t k = 0; k < negatives.size(); ++k)
      add(e, fmt::format("{}.{}", kNegative, k), prompts_.document, negatives[k]);
  } catch (const ContentsError& error) {
    r.fail(error.what());
  }
  if (!score.empty()) e.values["score"] = {static_cast<float>(r.number(score))};
  nlohmann::ordered_json texts = {{kAnchor, anchor}, {kPositive, positives[0]}};
  if (!negatives.empty()) texts["negatives"] = negatives;
  e.text = texts.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return e;
}

Example SentenceTexts::request(const Record& r) const {
  Example e;
  const std::string plain = fields_.text.value_or("text");
  try {
    for (const auto& [key, prompt] :
         {std::pair{plain, &prompts_.plain}, std::pair{std::string("prompt"), &prompts_.plain},
          std::pair{std::string("query"), &prompts_.query},
          std::pair{std::string("document"), &prompts_.document}})
      if (r.has(key)) {
        add(e, "text", *prompt, r.text(key));
        return e;
      }
  } catch (const ContentsError& error) {
    const std::string what = error.what();
    if (what.starts_with(r.where())) throw;
    r.fail(what);
  }
  const auto members = nlohmann::ordered_json::parse(r.json());
  std::vector<std::string> keys;
  for (const auto& [name, value] : members.items()) keys.push_back(name);
  r.fail(
      fmt::format("no text; expected one of the keys {}, prompt, query and document; {}. Rename the key of "
                  "the text to embed",
                  plain, listed_keys(keys)));
}

std::string SentenceTexts::fingerprint() const {
  return nlohmann::json({"sentences 1", lower_case_, include_prompt_, prompts_.plain, prompts_.query,
                         prompts_.document, max_length_})
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::shared_ptr<const Dataset> sentence_dataset(std::shared_ptr<const Dataset> examples) {
  return std::make_shared<SentenceDataset>(std::move(examples));
}

std::vector<std::string> text_names(i64 target_length) {
  std::vector<std::string> out = {kAnchor, kPositive};
  for (i64 k = 0; k + 1 < target_length; ++k) out.push_back(fmt::format("{}.{}", kNegative, k));
  return out;
}

void add_texts(Batch& batch, std::span<const Example> mine, const std::string& name,
               std::span<const std::string> modes, i32 padding) {
  std::vector<Example> masks(mine.size());
  std::vector<i64> tokens, skip;
  for (size_t r = 0; r < mine.size(); ++r) {
    const std::vector<i32>& ids = mine[r].ids.at(name);
    masks[r].ids["mask"].assign(ids.size(), 1);
    tokens.push_back(static_cast<i64>(ids.size()));
    const auto skipped = mine[r].ids.find(name + ".skip");
    skip.push_back(skipped == mine[r].ids.end() ? 0 : skipped->second.at(0));
  }
  batch.fields[name + ".ids"] = id_rows(mine, batch.shape, name, padding);
  batch.fields[name + ".mask"] = id_rows(masks, batch.shape, "mask", 0);
  add_pooling_weights(batch, name + ".", modes, tokens, skip);
}

}  // namespace redco
