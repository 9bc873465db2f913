#include "data/text/record_map.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/log_once.h"
#include "base/words.h"
#include "data/text/example_json.h"
#include "data/text/record_filter.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

// A part of a template: a text, or the path of a column.
struct TemplatePart {
  std::string text;
  bool is_column = false;
};

std::vector<TemplatePart> parse_template(const std::string& text) {
  std::vector<TemplatePart> parts(1);
  const auto fail = [&](const char* why) {
    throw UsageError(
        "[data] the template '{}' {}. Columns are in braces, {{question}}; {{{{ and }}}} are braces",
        excerpt(text), why);
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() &&
        (text[i + 1] == 'n' || text[i + 1] == 't' || text[i + 1] == '\\')) {
      // A line of a job file in single quotes, or of the command line, cannot have them otherwise.
      ++i;
      parts.back().text += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : '\\';
    } else if ((c == '{' || c == '}') && i + 1 < text.size() && text[i + 1] == c) {
      parts.back().text += c;
      ++i;
    } else if (c == '{') {
      const std::size_t end = text.find_first_of("{}", i + 1);
      if (end == std::string::npos || text[end] == '{') fail("has an open brace");
      if (end > i + 1) parts.push_back({text.substr(i + 1, end - i - 1), true});
      parts.emplace_back();
      i = end;
    } else if (c == '}') {
      fail("has a closing brace without an opening one");
    } else {
      parts.back().text += c;
    }
  }
  return parts;
}

// The keys that the settings name, each once.
std::vector<std::string> named_keys(const ExampleFields& f) {
  std::set<std::string> out;
  for (const auto* key :
       {&f.text,        &f.prompt, &f.completion, &f.messages,      &f.id,       &f.chosen,   &f.rejected,
        &f.instruction, &f.input,  &f.output,     &f.conversations, &f.anchor,   &f.positive, &f.negative,
        &f.score,       &f.tokens, &f.tags,       &f.spans,         &f.question, &f.context,  &f.answers,
        &f.choices})
    if (*key) out.insert(**key);
  for (const auto* key : {&f.source, &f.target, &f.text_pair, &f.image, &f.caption}) out.insert(*key);
  for (const auto* keys : {&f.label, &f.features}) out.insert(keys->begin(), keys->end());
  return {out.begin(), out.end()};
}

}  // namespace

bool is_template(const std::string& field) { return field.find('{') != std::string::npos; }

struct RecordMap::State {
  struct Template {
    std::string key;
    std::vector<TemplatePart> parts;
  };
  std::vector<std::string> paths;
  std::vector<Template> templates;
  std::optional<RecordFilter> filter;
  std::string where;
  bool strict = true;               // a template without one of its columns is bad
  std::vector<std::string> unseen;  // columns of the filter that no record had
  i64 records = 0, kept = 0;

  // Null if a column is missing; `problem` is then the reason.
  std::optional<std::string> rendered(const Template& t, const Json& record, std::string& problem) const {
    std::string out;
    for (const TemplatePart& p : t.parts) {
      if (!p.is_column) {
        out += p.text;
        continue;
      }
      const Json* v = value_at(record, p.text);
      if (v && v->is_string()) {
        out += v->get_ref<const std::string&>();
      } else if (v && v->is_primitive()) {
        out += v->dump();
      } else {
        std::vector<std::string> keys;
        for (const auto& [key, value] : record.items())
          if (keys.size() < 8) keys.push_back(key);
        problem =
            v ? fmt::format("\"{}\" in the template '{}' is {}; a path such as {}.0 names one of its values",
                            excerpt(p.text), excerpt(t.key), v->type_name(), p.text)
              : fmt::format("no \"{}\", which the template '{}' uses; its keys are {}", excerpt(p.text),
                            excerpt(t.key),
                            keys.empty() ? "none" : excerpt(fmt::format("{}", fmt::join(keys, ", "))));
        return std::nullopt;
      }
    }
    return out;
  }
};

RecordMap::RecordMap(const DataSettings& s, bool filters) : state_(std::make_unique<State>()) {
  for (const std::string& key : named_keys(s.fields))
    if (is_template(key))
      state_->templates.push_back({key, parse_template(key)});
    else if (key.find('.') != std::string::npos)
      state_->paths.push_back(key);
  state_->strict = filters;
  if (!filters || !s.where) return;
  state_->filter.emplace(*s.where);
  state_->where = *s.where;
  state_->unseen = state_->filter->columns();
}
RecordMap::RecordMap(RecordMap&&) noexcept = default;
RecordMap::~RecordMap() = default;

bool RecordMap::rewrites() const { return state_->filter || !state_->templates.empty(); }
bool RecordMap::changes() const { return rewrites() || !state_->paths.empty(); }

bool RecordMap::apply(std::string& json, std::string& problem) {
  problem.clear();
  if (!changes()) return true;
  State& s = *state_;
  ++s.records;
  Json record;
  try {
    record = parse_example_line(json);
  } catch (const ContentsError&) {
    ++s.kept;
    return true;
  }
  std::erase_if(s.unseen, [&](const std::string& column) {
    return value_at(record, column) != nullptr || record.contains(column);
  });
  try {
    if (s.filter && !s.filter->matches(record)) return false;
  } catch (const ContentsError& e) {
    problem = e.what();
    return true;
  }
  ++s.kept;
  bool changed = false;
  for (const std::string& path : s.paths) {
    if (record.contains(path)) continue;
    if (const Json* v = value_at(record, path)) {
      Json value = *v;  // the record may move
      record[path] = std::move(value);
      changed = true;
    }
  }
  for (const State::Template& t : s.templates) {
    std::string why;
    if (auto text = s.rendered(t, record, why)) {
      record[t.key] = std::move(*text);
      changed = true;
    } else if (s.strict) {
      problem = why;
    }
  }
  if (changed) json = record.dump(-1, ' ', false, Json::error_handler_t::replace);
  return true;
}

void RecordMap::finish() {
  const State& s = *state_;
  if (!s.filter || s.records == 0) return;
  if (!s.unseen.empty())
    throw UsageError("[data] data.where: no record has \"{}\". Correct the name of the key or column",
                     excerpt(s.unseen.front()));
  log_once(LogLevel::info,
           fmt::format("[data] data.where keeps {} of {}", s.kept, counted(s.records, "record")));
}

std::string RecordMap::fingerprint() const {
  const State& s = *state_;
  if (!changes()) return "";
  std::string text = "map 1 where " + s.where;
  for (const std::string& p : s.paths) text += "\npath " + p;
  for (const State::Template& t : s.templates) text += "\ntemplate " + t.key;
  return text;
}

}  // namespace redco
