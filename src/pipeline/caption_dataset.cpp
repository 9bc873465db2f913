#include "pipeline/caption_dataset.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "data/text/example_json.h"
#include "data/text/example_shapes.h"
#include "pipeline/indexed_data.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// The text under a key; null where there is none.
const std::string* find_text(const Json& j, const std::string& key) {
  const auto it = j.find(key);
  if (it == j.end() || it->is_null()) return nullptr;
  return &as_text(*it, key);
}

const std::string& not_blank(const std::string* text, const std::string& key) {
  if (!text) throw ContentsError("no \"{}\" (data.fields renames it)", key);
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) throw ContentsError("the {} is empty", key);
  return *text;
}

}  // namespace

std::string caption_key(const nlohmann::ordered_json& j, const std::string& named) {
  const bool has = j.contains(named) && !j[named].is_null();
  return !has && named == ExampleFields().caption && j.contains("text") ? "text" : named;
}

std::string language_of(const nlohmann::ordered_json& j) {
  for (const char* key : {"language", "locale"})
    if (const std::string* language = find_text(j, key); language && !language->empty()) return *language;
  return "";
}

TokenizedExample CaptionLines::read(const ExampleRecord& r) const {
  const ExampleFields& fields = settings().fields;
  TokenizedExample e;
  e.kind = ExampleKind::completion;
  std::string image = r.text, caption = r.target.value_or(""), language;
  Json kept;
  if (r.target) {
    not_blank(&image, fields.source);
    not_blank(&caption, fields.target);
  } else {
    const Json j = parse_example_line(r.text);
    image = not_blank(find_text(j, fields.source), fields.source);
    const std::string key = caption_key(j, fields.target);
    caption = not_blank(find_text(j, key), key);
    if (prefix_) language = language_of(j);
    if (const auto id = j.find(fields.id.value_or("")); fields.id && id != j.end()) kept["id"] = *id;
  }
  e.ids = caption_ids(caption, &e.cut, language);
  e.in_loss.assign(e.ids.size(), 1);
  kept["image"] = std::move(image);
  e.id = dump(kept);
  e.reference = std::move(caption);
  return e;
}

std::vector<i32> CaptionLines::caption_ids(const std::string& caption, bool* cut,
                                           const std::string& language) const {
  bool ignored = false;
  std::vector<i32> ids = target_ids(caption, cut ? cut : &ignored, language);
  if (ids.empty()) throw ContentsError("the {} has no tokens after tokenization", settings().fields.target);
  return ids;
}

std::vector<i32> CaptionLines::target_ids(const std::string& text, bool* cut,
                                          const std::string& language) const {
  if (!prefix_) return pairs_.target_ids(text, cut);
  const auto eos = tokenizer_.special().eos;
  std::vector<i32> ids = prefix_->ids(language), own = tokenizer_.encode(text, false);
  const i64 most = settings().max_target_length - std::ssize(ids) - (eos ? 1 : 0);
  if (std::ssize(own) > most) {
    *cut = true;
    own.resize(static_cast<size_t>(std::max<i64>(most, 0)));
  }
  if (own.empty()) return {};
  ids.insert(ids.end(), own.begin(), own.end());
  if (eos) ids.push_back(*eos);
  return ids;
}

std::string CaptionLines::fingerprint() const {
  return "captions " + pairs_.fingerprint() + (prefix_ ? " after " + prefix_->fingerprint : "");
}

std::string CaptionLines::image_of(const std::string& json) const {
  const Json j = parse_example_line(json);
  const std::string& key = settings().fields.source;
  const std::string* image = find_text(j, key);
  return not_blank(image ? image : find_text(j, "prompt"), key);
}

Example CaptionLines::caption_of(const std::string& json) const {
  const Json j = parse_example_line(json);
  const std::string key = caption_key(j, settings().fields.target);
  const std::string* caption = find_text(j, key);
  const std::string& text = not_blank(caption ? caption : find_text(j, "prompt"), key);
  Example e;
  bool cut = false;
  e.ids["labels"] = target_ids(text, &cut);
  if (cut)
    throw ContentsError("the {} has more than {} tokens; shorten it", key, settings().max_target_length);
  e.text = dump({{"caption", text}});
  return e;
}

Example CaptionDataset::get(i64 i) const {
  const ExampleEntry entry = index_.entry(i);
  StoredExample s = index_.read(entry);
  const Json kept = Json::parse(s.id);
  const std::string image = kept.at("image"), line = index_.where(entry);
  const std::string folder = parent_path(line.substr(0, line.rfind(':')));
  Example e;
  e.ordinal = i;
  try {
    e.values[inputs_->words().field] = inputs_->read(image, folder);
  } catch (const ContentsError& error) {
    throw ContentsError("{} (named by {})", error.what(), line);
  }
  e.ids["labels"] = std::move(s.ids);
  if (const auto id = kept.find("id"); id != kept.end()) e.id = dump(*id);
  e.text = dump({{inputs_->words().key, image}, {"caption", s.reference}});
  return e;
}

std::string CaptionDataset::describe() const {
  std::string s =
      fmt::format("{} with {} of {} tokens, at most {}", counted(size(), inputs_->words().description),
                  inputs_->words().captions, index_.n_tokens(), index_.longest());
  if (index_.n_cut() > 0) s += fmt::format("; {} truncated to data.max_target_length", index_.n_cut());
  if (index_.n_bad() > 0) s += "\n" + index_.describe_bad();
  return s;
}

std::shared_ptr<const Dataset> make_caption_dataset(const PairSource& source,
                                                    const std::function<CaptionReader()>& reader) {
  std::optional<CaptionReader> r;
  return open_indexed(
      {.prepare = [&] { r.emplace(reader()); },
       .build =
           [&] {
             return build_pair_index(
                 source, {.what = "captions",
                          .fingerprint = r->lines.fingerprint(),
                          .settings = r->lines.settings(),
                          .read = [&](const ExampleRecord& record) { return r->lines.read(record); },
                          .vocab_size = r->lines.vocab_size(),
                          .references = true});
           },
       .open =
           [&](const std::string& path) {
             return std::make_shared<CaptionDataset>(open_pair_index(source, path), r->inputs);
           }});
}

}  // namespace redco
