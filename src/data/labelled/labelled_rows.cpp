#include "data/labelled/labelled_rows.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/ascii.h"
#include "base/error.h"
#include "base/input_file.h"
#include "base/log.h"
#include "base/utf8.h"
#include "base/words.h"
#include "data/labelled/table_reader.h"
#include "data/text/example_json.h"
#include "data/text/example_shapes.h"
#include "data/text/field_hints.h"
#include "data/text/record_filter.h"
#include "data/text/record_lines.h"
#include "data/text/record_map.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMaxNumbers = std::size_t{1} << 24;  // per row

std::vector<std::string> keys_of(const Json& j) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : j.items()) keys.push_back(key);
  return keys;
}

const Json& need(const Json& j, const std::string& key) {
  const Json* v = value_at(j, key);
  if (!v && j.contains(key)) throw ContentsError("\"{}\" is null, expected a value", excerpt(key));
  if (!v) throw ContentsError("no \"{}\"; {}", excerpt(key), keys_hint(keys_of(j)));
  return *v;
}

const std::string& text_of(const Json& v, const std::string& key) {
  if (v.is_number() || v.is_boolean())
    throw ContentsError(
        "\"{0}\" is not a text but {1}. The template '{{{0}}}' in data.fields makes a text of it",
        excerpt(key), v.type_name());
  return as_text(v, key);
}

// Class names are stored in config.json, which is UTF-8.
void check_label(const std::string& label) {
  if (label.find_first_not_of(" \t\r\n") == std::string::npos) throw ContentsError("the label is empty");
  if (!is_utf8(label))
    throw ContentsError("the label '{}' is not valid UTF-8. Convert the file to UTF-8", excerpt(label));
}

// A label as a table would have it.
std::string label_of(const Json& v, const std::string& key) {
  if (v.is_string()) return v.get<std::string>();
  if (v.is_number() || v.is_boolean()) return v.dump();
  throw ContentsError("\"{}\" is neither a text nor a number but {}", excerpt(key), v.type_name());
}

// texts: the numbers are cells of a table.
void add_numbers(const Json& v, const std::string& key, bool texts, std::vector<float>& to) {
  if (v.is_array()) {
    for (const Json& one : v) add_numbers(one, key, texts, to);
    return;
  }
  if (texts && v.is_string())
    return to.push_back(parse_number(v.get_ref<const std::string&>(), "column " + key));
  if (!v.is_number()) throw ContentsError("\"{}\" holds no numbers but {}", excerpt(key), v.type_name());
  const double x = v.get<double>();
  if (!std::isfinite(static_cast<float>(x)))
    throw ContentsError("\"{}\": {} is outside the range of a float", excerpt(key), v.dump());
  if (to.size() == kMaxNumbers) throw ContentsError("more than {} numbers", kMaxNumbers);
  to.push_back(static_cast<float>(x));
}

void check_text(const std::string& text, std::string_view what) {
  if (text.find_first_not_of(" \t\r\n") == std::string::npos) throw ContentsError("{} is empty", what);
}

void check_row(const LabelledRow& row, LabelledInput input) {
  if (input == LabelledInput::text) {
    check_text(row.text, "the text");
    if (row.text_pair) check_text(*row.text_pair, "the second text of the pair");
  }
  if (input == LabelledInput::image) check_text(row.image, "the image's path");
  if (input == LabelledInput::vector && row.features.empty()) throw ContentsError("it has no numbers");
  for (const std::string& l : row.label) check_label(l);
}

std::string text_key(const ExampleFields& fields) {
  if (!fields.text) throw UsageError("[data] data.fields.text is ~, expected the key or column of the text");
  return *fields.text;
}

// The input of an example, without a label.
LabelledRow input_of(const Json& j, const ExampleFields& fields, LabelledInput input, bool texts = false) {
  LabelledRow row;
  if (input == LabelledInput::text) {
    const std::string key = text_key(fields);
    if (!value_at(j, key))
      throw ContentsError("no \"{}\"; {}", excerpt(key), labelled_fields_hint(keys_of(j), key, fields.label));
    row.text = text_of(need(j, key), key);
    if (const Json* pair = value_at(j, fields.text_pair)) row.text_pair = text_of(*pair, fields.text_pair);
  } else if (input == LabelledInput::image) {
    row.image = text_of(need(j, fields.image), fields.image);
  } else {
    for (const std::string& key : fields.features) add_numbers(need(j, key), key, texts, row.features);
  }
  if (const Json* id = fields.id ? value_at(j, *fields.id) : nullptr) row.id = id->dump();
  return row;
}

std::optional<i64> whole_number(const std::string& text) {
  i64 n = 0;
  const char* end = text.data() + text.size();
  const auto r = std::from_chars(text.data(), end, n);
  if (text.empty() || r.ec != std::errc() || r.ptr != end || std::to_string(n) != text) return std::nullopt;
  return n;
}

}  // namespace

float parse_number(std::string_view text, std::string_view what) {
  const std::optional<double> x = number_of_cell(text);
  if (!x || !std::isfinite(static_cast<float>(*x)))
    throw ContentsError("{}: expected a number, got '{}'", what, excerpt(text));
  return static_cast<float>(*x);
}

LabelledRow unlabelled_row(const std::string& json, const ExampleFields& fields, LabelledInput input) {
  Json j = parse_example_line(json);
  ExampleFields f = fields;
  const std::string key = input == LabelledInput::image ? f.image : f.text.value_or("text");
  if (input != LabelledInput::vector && !value_at(j, key))
    for (const char* usual : {"text", "prompt"})
      if (value_at(j, usual) && (input != LabelledInput::image || usual == std::string_view("prompt")))
        (input == LabelledInput::image ? f.image : f.text.emplace()) = usual;
  const LabelledRow row = input_of(j, f, input, true);  // cells of tables are texts
  check_row(row, input);
  return row;
}

// --- rows of a file ---

struct LabelledReader::Source {
  virtual ~Source() = default;
  virtual bool read() = 0;                  // reads the next row's text; ContentsErrors with the place
  virtual void take(LabelledRow& row) = 0;  // parses it; ContentsErrors without the place
  virtual std::string where() const = 0;
  virtual u64 stored_position() const = 0;
  LabelledInput input = LabelledInput::text;
};

namespace {

struct RecordRows : LabelledReader::Source {
  RecordRows(const std::string& path, const DataSettings& s) : lines({path}, s), fields(s.fields) {}
  bool read() override { return lines.next(line); }
  void take(LabelledRow& row) override {
    if (const std::string problem = lines.problem(); !problem.empty()) throw ContentsError("{}", problem);
    const Json j = parse_example_line(line);
    row = input_of(j, fields, input, lines.only_texts());
    for (const std::string& key : fields.label) {
      const Json& v = need(j, key);
      if (!v.is_array())
        row.label.push_back(label_of(v, key));
      else
        for (const Json& one : v) row.label.push_back(label_of(one, key));
    }
    row.line = lines.line_number();
  }
  std::string where() const override { return lines.where(); }
  u64 stored_position() const override { return lines.stored_position(); }

  RecordLines lines;
  std::string line;
  ExampleFields fields;
};

struct Table : LabelledReader::Source {
  Table(const std::string& path, const std::string& format, const DataSettings& s, LabelledInput in)
      : path(path), rows(path, TableReader::kind_of(format)) {
    const ExampleFields& f = s.fields;
    std::vector<std::string> asked = f.label;
    if (in == LabelledInput::text) asked.push_back(text_key(f));
    if (in == LabelledInput::image) asked.push_back(f.image);
    if (in == LabelledInput::vector) asked.insert(asked.end(), f.features.begin(), f.features.end());
    const bool header = s.header.value_or(!std::all_of(asked.begin(), asked.end(), is_column_number));
    if (header) {
      if (!rows.next(names)) throw ContentsError("{}: the file is empty; its header is missing", path);
      width = names.size();
    }
    const std::vector<std::string>* known = header ? &names : nullptr;
    const auto column = [&](const std::string& name, const std::string& key) {
      return find_column(name, known, "data.fields." + key, path);
    };
    const auto there = [&](const std::string& name) {
      return header ? std::find(names.begin(), names.end(), name) != names.end() : is_column_number(name);
    };
    if (in == LabelledInput::text) {
      if (header && !there(text_key(f)))
        throw UsageError("[data] {}: no column {}; {}. Without a header, set data.header=false", path,
                         excerpt(text_key(f)), labelled_fields_hint(names, text_key(f), f.label));
      text = column(text_key(f), "text");
      if (there(f.text_pair)) pair = column(f.text_pair, "text_pair");
    } else if (in == LabelledInput::image) {
      text = column(f.image, "image");
    } else {
      for (const std::string& name : f.features) features.push_back(column(name, "features"));
    }
    for (const std::string& name : f.label) labels.push_back(column(name, "label"));
    if (f.id && there(*f.id)) id = column(*f.id, "id");
  }

  bool read() override { return rows.next(cells); }
  void take(LabelledRow& row) override {
    row.line = rows.line_number();
    if (width == 0) width = cells.size();
    if (cells.size() != width)
      throw ContentsError("{}, but {} are expected{}", counted(cells.size(), "column"), width,
                          names.empty()
                              ? ", as in the first row"
                              : fmt::format(": {}", excerpt(fmt::format("{}", fmt::join(names, ", ")))));
    if (!names.empty() && cells == names) throw ContentsError("the row repeats the header. Remove it");
    const auto cell = [&](std::size_t k) -> const std::string& {
      if (k >= cells.size())
        throw ContentsError("column {} does not exist: the table has {} columns", k + 1, cells.size());
      return cells[k];
    };
    if (input == LabelledInput::vector) {
      for (const std::size_t k : features)
        row.features.push_back(
            parse_number(cell(k), names.empty() ? fmt::format("column {}", k + 1) : "column " + names[k]));
    } else {
      (input == LabelledInput::text ? row.text : row.image) = cell(text);
    }
    if (pair) row.text_pair = cell(*pair);
    for (const std::size_t k : labels) row.label.push_back(cell(k));
    if (id) row.id = Json(cell(*id)).dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  std::string where() const override { return rows.where(); }
  u64 stored_position() const override { return rows.stored_position(); }

  std::string path;
  TableReader rows;
  std::vector<std::string> names, cells;
  std::size_t width = 0, text = 0;
  std::optional<std::size_t> pair, id;
  std::vector<std::size_t> features, labels;
};

}  // namespace

LabelledReader::LabelledReader(const std::string& path, const DataSettings& s, LabelledInput input) {
  const std::string format = s.format_of({path});
  const bool table = format == "csv" || format == "tsv";
  if (format == "jsonl" || format == "json" || format == "parquet" || format == "arrow" ||
      format == "conll" || format == "webdataset" ||
      (table && (is_image_table(path) || RecordMap(s, true).rewrites()))) {
    source_ = std::make_unique<RecordRows>(path, s);
  } else if (table) {
    source_ = std::make_unique<Table>(path, format, s, input);
  } else {
    throw UsageError(
        "[data] {}: labelled examples need a .tsv, .csv, .jsonl, .json (also with .gz or .zst), .parquet or "
        ".arrow file. For another name, set data.format, e.g. to csv",
        path);
  }
  source_->input = input;
}
LabelledReader::~LabelledReader() = default;

bool LabelledReader::next(LabelledRow& row) {
  row = {};
  if (!source_->read()) return false;
  try {
    source_->take(row);
    check_row(row, source_->input);
  } catch (const ContentsError& e) {
    row = {};
    row.bad = fmt::format("{}: {}", source_->where(), e.what());
  }
  return true;
}
void skip_or_throw(const std::string& bad, const DataSettings& s) {
  if (!s.skip_bad) throw ContentsError("{}; data.skip_bad=true skips and counts such rows", bad);
}

std::string LabelledReader::where() const { return source_->where(); }
u64 LabelledReader::stored_position() const { return source_->stored_position(); }

namespace {
// "2,5": classes as numbers, which have no commas themselves.
bool is_numbers(const std::string& label) {
  return label.find_first_not_of("0123456789,") == std::string::npos;
}
}  // namespace

std::vector<std::string> several_labels(const LabelledRow& row, const DataSettings& s) {
  const std::vector<std::string>& keys = s.fields.label;
  std::vector<std::string> out;
  if (keys.size() > 1) {
    if (row.label.size() != keys.size())
      throw ContentsError("{}, but data.fields.label names {}", counted(row.label.size(), "label"),
                          keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::string& v = row.label[i];
      const bool yes = v == "1" || v == "true" || v == "True" || v == "1.0";
      if (!yes && v != "0" && v != "false" && v != "False" && v != "0.0")
        throw ContentsError("the label {} is '{}'; expected 0 or 1", excerpt(keys[i]), excerpt(v));
      if (yes) out.push_back(keys[i]);
    }
    return out;
  }
  for (const std::string& l : row.label)
    for (std::size_t at = 0; at <= l.size();) {
      const std::size_t end = std::min(l.find(is_numbers(l) ? ',' : '|', at), l.size());
      if (end > at) out.push_back(l.substr(at, end - at));
      at = end + 1;
    }
  return out;
}

// --- classes ---

ClassNames::ClassNames(std::vector<std::string> names) : names_(std::move(names)) {
  if (names_.empty()) throw UsageError("[data] the data have no class; expected a label in each row");
  for (const std::string& n : names_) {
    if (n.empty()) throw UsageError("[data] a class's name is empty");
    if (!numbers_.emplace(n, static_cast<i64>(numbers_.size())).second)
      throw UsageError("[data] two classes have the name '{}'", excerpt(n));
    numbered_ = numbered_ && !whole_number(n);
  }
}

std::string ClassNames::words() const {
  std::vector<std::string> some;
  for (std::size_t i = 0; i < std::min<std::size_t>(names_.size(), 12); ++i)
    some.push_back(excerpt(names_[i], 40));
  return fmt::format("{}: {}{}", counted(size(), "class"), fmt::join(some, ", "),
                     names_.size() > some.size() ? ", ..." : "");
}

i64 ClassNames::number_of(const std::string& label) const {
  if (const auto it = numbers_.find(label); it != numbers_.end()) return it->second;
  if (numbered_)
    if (const auto n = whole_number(label); n && *n >= 0 && *n < size()) return *n;
  throw ContentsError("the label '{}' is not one of the {}", excerpt(label), words());
}

std::vector<std::string> sorted_labels(std::vector<std::string> labels) {
  std::sort(labels.begin(), labels.end());
  labels.erase(std::unique(labels.begin(), labels.end()), labels.end());
  if (std::all_of(labels.begin(), labels.end(),
                  [](const std::string& l) { return whole_number(l).has_value(); }))
    std::sort(labels.begin(), labels.end(),
              [](const std::string& a, const std::string& b) { return *whole_number(a) < *whole_number(b); });
  return labels;
}

namespace {

// Labels that differ only in case or in blanks around them are probably one class.
void warn_of_similar(const std::set<std::string>& labels) {
  std::map<std::string, std::string> plain;
  for (const std::string& l : labels) {
    const auto begin = l.find_first_not_of(" \t\r\n"), end = l.find_last_not_of(" \t\r\n");
    const std::string key = begin == l.npos ? "" : ascii_lower(l.substr(begin, end - begin + 1));
    const auto [other, first] = plain.emplace(key, l);
    if (!first)
      warn(
          "[data] the labels '{}' and '{}' differ only in blanks or case; they are two classes. Write both the "
          "same way if they are one",
          excerpt(other->second), excerpt(l));
  }
}

}  // namespace

std::vector<std::string> distinct_labels(const std::vector<std::string>& files, const DataSettings& s,
                                         LabelledInput input, bool several) {
  if (several && s.fields.label.size() > 1) return s.fields.label;
  std::set<std::string> seen;
  for (const std::string& file : files) {
    LabelledReader rows(file, s, input);
    for (LabelledRow row; rows.next(row);) {
      if (!row.bad.empty()) {
        skip_or_throw(row.bad, s);
        continue;
      }
      if (several) row.label = several_labels(row, s);
      if (!several && row.label.size() != 1)
        throw ContentsError(
            "{}: {} labels, but one is expected: the class. For several classes per example set "
            "model.problem_type: multi_label_classification",
            rows.where(), row.label.size());
      seen.insert(row.label.begin(), row.label.end());
      if (static_cast<i64>(seen.size()) > kMaxClasses)
        throw ContentsError("{}: more than {} different labels. Check that data.fields.label is the class",
                            rows.where(), kMaxClasses);
    }
  }
  warn_of_similar(seen);
  const auto number = [](const std::string& l) { return number_of_cell(l).has_value(); };
  if (const auto part = std::ranges::find_if(seen, [](const std::string& l) { return !whole_number(l); });
      part != seen.end() && std::ranges::all_of(seen, number))
    warn(
        "[data] the labels are numbers such as {}, read as names of {} classes. pipeline: regression learns numbers",
        excerpt(*part), seen.size());
  return sorted_labels({seen.begin(), seen.end()});
}

}  // namespace redco
