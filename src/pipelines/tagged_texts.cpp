#include "pipelines/tagged_texts.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/words.h"
#include "data/text/record_lines.h"
#include "pipelines/record_keys.h"

namespace redco {

namespace {

using TagJson = nlohmann::ordered_json;

std::vector<std::string> tags_of_list(const Record& r, const std::string& key) {
  std::vector<std::string> out;
  const TagJson list = TagJson::parse(r.json(key));
  if (!list.is_array())
    r.fail(fmt::format("\"{}\" is of type {}; expected a list of tags", key, list.type_name()));
  for (const TagJson& one : list) {
    if (!one.is_string() && !one.is_number_integer())
      r.fail(fmt::format("\"{}\" has the tag {}; expected names or whole numbers", key, excerpt(one.dump())));
    out.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  }
  return out;
}

std::vector<std::string> tags_of_spans(const Record& r, const std::string& key,
                                       const std::vector<Word>& words) {
  std::vector<std::string> out(words.size(), "O");
  const i64 length = words.empty() ? 0 : words.back().end;
  std::vector<bool> used(words.size(), false);
  for (const Record& span : r.records(key)) {
    const i64 begin = span.integer("start"), end = span.integer("end");
    if (begin < 0 || begin >= end || begin >= length)
      span.fail(fmt::format("the span {} to {} is not inside of the text", begin, end));
    const std::string label = span.text("label");
    bool first = true;
    for (std::size_t w = 0; w < words.size(); ++w) {
      if (words[w].end <= begin || words[w].begin >= end) continue;
      if (used[w]) span.fail(fmt::format("the span {} to {} overlaps another one", begin, end));
      used[w] = true;
      out[w] = (first ? "B-" : "I-") + label;
      first = false;
    }
    if (first) span.fail(fmt::format("the span {} to {} has no word", begin, end));
  }
  return out;
}

bool is_tag_number(const std::string& s) {
  return !s.empty() && s.size() < 10 && std::ranges::all_of(s, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

TaggedText read_tagged_text(const Record& r, const ExampleFields& fields) {
  TaggedText out;
  const std::string tokens = key_of(r, fields.tokens, {"tokens", "words"});
  const std::string tags = key_of(r, fields.tags, {"tags", "ner_tags", "labels"});
  if (!tokens.empty()) {
    out.words = words_of_list(r.texts(tokens));
    if (!tags.empty()) out.tags = tags_of_list(r, tags);
    if (out.tags && out.tags->size() != out.words.size())
      r.fail(fmt::format("\"{}\" has {}, but \"{}\" has {}", tags, counted(out.tags->size(), "tag"), tokens,
                         counted(out.words.size(), "word")));
  } else {
    std::string text = fields.text.value_or("text");
    if (!r.has(text) && r.has("prompt")) text = "prompt";
    if (!r.has(text))
      r.fail(fmt::format(
          "neither \"tokens\" nor \"{}\"; data.fields.tokens or data.fields.text names another key", text));
    out.text = r.text(text);
    out.words = words_of_text(out.text);
    const std::string spans = key_of(r, fields.spans, {"spans", "entities"});
    if (!spans.empty()) out.tags = tags_of_spans(r, spans, out.words);
  }
  if (out.words.empty()) r.fail("the text has no words");
  return out;
}

i64 tag_number(const ClassNames& classes, const std::string& tag) {
  const auto it = std::ranges::find(classes.names(), tag);
  if (it != classes.names().end()) return it - classes.names().begin();
  if (is_tag_number(tag))
    if (const i64 n = std::stol(tag); n < classes.size()) return n;
  throw ContentsError("the tag '{}' is not one of the {}", excerpt(tag), classes.words());
}

std::vector<std::string> distinct_tags(const std::vector<std::string>& files, const DataSettings& settings) {
  std::set<std::string> seen;
  RecordLines lines(files, settings);
  for (std::string json; lines.next(json);) {
    try {
      if (const std::string problem = lines.problem(); !problem.empty())
        throw ContentsError("{}: {}", lines.where(), problem);
      const Record r = Record::of_line(json, lines.where(), lines.only_texts());
      if (const auto tags = read_tagged_text(r, settings.fields).tags)
        seen.insert(tags->begin(), tags->end());
    } catch (const ContentsError&) {
      if (!settings.skip_bad) throw;
    }
  }
  // A span may have one word in training and several later.
  const std::set<std::string> found = seen;
  for (const std::string& tag : found)
    if (tag.starts_with("B-")) seen.insert("I-" + tag.substr(2));
  std::vector<std::string> out(seen.begin(), seen.end());
  if (!out.empty() && std::ranges::all_of(out, is_tag_number)) {
    const i64 most =
        std::stol(*std::ranges::max_element(out, {}, [](const auto& s) { return std::stol(s); }));
    out.clear();
    for (i64 n = 0; n <= most; ++n) out.push_back(std::to_string(n));
    return out;
  }
  std::ranges::stable_partition(out, [](const std::string& tag) { return tag == "O"; });
  return out;
}

}  // namespace redco
