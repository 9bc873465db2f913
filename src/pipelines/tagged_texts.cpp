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
    if (!one.is_string() && !one.is_number_integer() && !one.is_boolean())
      r.fail(fmt::format("\"{}\" has the tag {}; expected names or whole numbers", key, excerpt(one.dump())));
    out.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  }
  return out;
}

struct TagSpan {
  i64 begin = 0, end = 0;
  std::string label;
};
// {"start", "end", "label"}, the same with start_offset and end_offset (doccano), [start, end, label]
// (spaCy), or {"start", "end", "labels": [label]}, also as a "value" (Label Studio, whose other results are
// no spans).
std::vector<TagSpan> spans_of(const Record& r, const std::string& key) {
  const TagJson list = TagJson::parse(r.json(key));
  std::vector<TagSpan> out;
  const auto refuse = [&](const TagJson& span) {
    r.fail(fmt::format(
        "\"{}\" has {}; expected {{\"start\": 0, \"end\": 4, \"label\": \"PER\"}} or [0, 4, \"PER\"]", key,
        excerpt(span.dump())));
  };
  if (!list.is_array()) refuse(list);
  for (const TagJson& one : list) {
    const bool result = one.is_object() && one.contains("value") && one["value"].is_object();
    if (result && !one["value"].contains("start")) continue;
    const TagJson& span = result ? one["value"] : one;
    const auto value = [&](std::size_t at, const char* name, const char* other) -> TagJson {
      if (span.is_array()) return span.size() == 3 ? span[at] : TagJson();
      return span.is_object() ? span.value(span.contains(name) ? name : other, TagJson()) : TagJson();
    };
    const TagJson begin = value(0, "start", "start_offset"), end = value(1, "end", "end_offset"),
                  labels = value(2, "labels", "label"),
                  label = labels.is_null()                          ? value(2, "type", "type")
                          : labels.is_array() && labels.size() == 1 ? labels[0]
                                                                    : labels;
    if (!begin.is_number_integer() || !end.is_number_integer() || !label.is_string()) refuse(span);
    out.push_back({begin, end, label});
  }
  return out;
}

// TRL's stepwise supervision.
TaggedText steps_of(const Record& r, const std::string& tags) {
  TaggedText out;
  out.steps = true;
  const std::vector<std::string> steps = r.texts("completions");
  if (steps.empty()) r.fail("\"completions\" is empty");
  const auto add = [&](const std::string& text) {
    const i64 n = std::ssize(out.words);
    out.words.push_back({text, n, n + 1, true});
  };
  add(r.text("prompt"));
  for (const std::string& step : steps) {
    add(step);
    add("\n");
  }
  if (!tags.empty()) out.tags = tags_of_list(r, tags);
  if (out.tags && out.tags->size() != steps.size())
    r.fail(fmt::format("\"{}\" has {}, but \"completions\" has {}", tags, counted(out.tags->size(), "label"),
                       counted(steps.size(), "step")));
  return out;
}

std::vector<std::string> tags_of_spans(const Record& r, const std::string& key,
                                       const std::vector<Word>& words) {
  std::vector<std::string> out(words.size(), "O");
  const i64 length = words.empty() ? 0 : words.back().end;
  std::vector<bool> used(words.size(), false);
  for (const auto& [begin, end, label] : spans_of(r, key)) {
    if (begin < 0 || begin >= end || begin >= length)
      r.fail(fmt::format("the span {} to {} is not inside of the text", begin, end));
    bool first = true;
    for (std::size_t w = 0; w < words.size(); ++w) {
      if (words[w].end <= begin || words[w].begin >= end) continue;
      if (used[w]) r.fail(fmt::format("the span {} to {} overlaps another one", begin, end));
      used[w] = true;
      out[w] = (first ? "B-" : "I-") + label;
      first = false;
    }
    if (first) r.fail(fmt::format("the span {} to {} has no word", begin, end));
  }
  return out;
}

bool is_tag_number(const std::string& s) {
  return !s.empty() && s.size() < 10 && std::ranges::all_of(s, [](char c) { return c >= '0' && c <= '9'; });
}

}  // namespace

std::vector<std::size_t> TaggedText::tagged() const {
  std::vector<std::size_t> out;
  for (std::size_t w = steps ? 2 : 0; w < words.size(); w += steps ? 2 : 1) out.push_back(w);
  return out;
}

TaggedText read_tagged_text(const Record& r, const ExampleFields& fields) {
  TaggedText out;
  std::string tokens = key_of(r, fields.tokens, {"tokens", "words"});
  // Prodigy's tokens are places in the text.
  if (!tokens.empty() && !fields.tokens && r.json(tokens).starts_with("[{")) tokens.clear();
  const std::string tags = key_of(r, fields.tags, {"tags", "ner_tags", "labels"});
  if (tokens.empty() && r.has("completions") && r.has("prompt")) return steps_of(r, tags);
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
    const std::string spans = key_of(r, fields.spans, {"spans", "entities", "label"});
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
