#include "pipeline/records.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/jsonl.h"
#include "base/words.h"
#include "data/builtin/builtin.h"
#include "data/index/cached_index.h"
#include "data/index/source_files.h"
#include "data/text/field_hints.h"
#include "data/text/record_lines.h"
#include "pipeline/indexed_data.h"
#include "pipeline/record_file.h"

namespace redco {

using RecordJson = nlohmann::ordered_json;

struct Record::Object {
  RecordJson json;
  bool only_texts = false;  // a row of a table: numbers are texts, too
};

Record::Record(std::string_view json, std::string where)
    : object_(std::make_unique<Object>(Object{parse_json_line(json, where)})), where_(std::move(where)) {}
Record::Record(std::unique_ptr<Object> object, std::string where)
    : object_(std::move(object)), where_(std::move(where)) {}
Record Record::of_line(std::string_view json, std::string where, bool only_texts) {
  Record r(json, std::move(where));
  r.object_->only_texts = only_texts;
  return r;
}
Record Record::renamed(const std::vector<std::pair<std::string, std::string>>& names) const {
  Record r(std::make_unique<Object>(*object_), where_);
  for (const auto& [from, to] : names)
    if (has(from)) r.object_->json[to] = object_->json.at(from);
  return r;
}
Record::Record(Record&&) noexcept = default;
Record::~Record() = default;

void Record::fail(const std::string& why) const { throw ContentsError("{}: {}", where_, why); }

bool Record::has(const std::string& key) const {
  return object_->json.contains(key) && !object_->json.at(key).is_null();
}

namespace {

const RecordJson& need(const Record& r, const RecordJson& object, const std::string& key, const char* what,
                       bool (*right)(const RecordJson&)) {
  const auto it = object.find(key);
  if (it != object.end() && it->is_null()) r.fail(fmt::format("\"{}\" is null", key));
  if (it == object.end()) {
    std::vector<std::string> keys;
    for (const auto& [name, value] : object.items()) keys.push_back(name);
    const std::string near = nearest(key, keys);
    r.fail(fmt::format("no \"{}\"; {}", key,
                       near.empty() ? listed_keys(keys) : fmt::format("did you mean \"{}\"?", near)));
  }
  if (!right(*it)) r.fail(fmt::format("\"{}\" is of type {}; expected {}", key, it->type_name(), what));
  return *it;
}
bool is_text(const RecordJson& j) { return j.is_string(); }
bool is_number(const RecordJson& j) { return j.is_number(); }
bool is_integer(const RecordJson& j) { return j.is_number_integer(); }
template <bool (*Right)(const RecordJson&)>
bool all_of(const RecordJson& j) {
  return j.is_array() && std::ranges::all_of(j, Right);
}
// The number that a cell consists of.
template <class T>
T number_in(const Record& r, const std::string& key, const char* what) {
  const std::string text = r.text(key);
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(static_cast<double>(value)))
    r.fail(fmt::format("\"{}\" is '{}'; expected {}", key, excerpt(text), what));
  return value;
}
bool is_object(const RecordJson& j) { return j.is_object(); }
std::string dumped(const RecordJson& j) {
  return j.dump(-1, ' ', false, RecordJson::error_handler_t::replace);
}

}  // namespace

std::string Record::text(const std::string& key) const {
  return need(*this, object_->json, key, "a text", is_text).get<std::string>();
}
std::string Record::text(const std::string& key, const std::string& otherwise) const {
  return has(key) ? text(key) : otherwise;
}
double Record::number(const std::string& key) const {
  if (object_->only_texts) return number_in<double>(*this, key, "a number");
  return need(*this, object_->json, key, "a number", is_number).get<double>();
}
i64 Record::integer(const std::string& key) const {
  if (object_->only_texts) return number_in<i64>(*this, key, "an integer");
  return need(*this, object_->json, key, "an integer", is_integer).get<i64>();
}
std::vector<std::string> Record::texts(const std::string& key) const {
  return need(*this, object_->json, key, "a list of texts", all_of<is_text>).get<std::vector<std::string>>();
}
std::vector<float> Record::numbers(const std::string& key) const {
  return need(*this, object_->json, key, "a list of numbers", all_of<is_number>).get<std::vector<float>>();
}
std::vector<Record> Record::records(const std::string& key) const {
  std::vector<Record> out;
  for (const RecordJson& j : need(*this, object_->json, key, "a list of objects", all_of<is_object>))
    out.push_back(Record(std::make_unique<Object>(Object{j}), where_ + ": " + key));
  return out;
}
std::string Record::json(const std::string& key) const {
  return dumped(need(*this, object_->json, key, "a value", [](const RecordJson&) { return true; }));
}
std::string Record::json() const { return dumped(object_->json); }

std::string json_object(const std::vector<std::pair<std::string, std::string>>& texts) {
  RecordJson j = RecordJson::object();
  for (const auto& [key, text] : texts) j[key] = text;
  return dumped(j);
}

namespace {

using OpenLines = std::function<RecordLines()>;

// The example of the last line. ContentsErrors begin with the line's place.
std::optional<Example> read_line(const RecordLines& lines, const std::string& line, const ReadRecord& read) {
  if (const std::string problem = lines.problem(); !problem.empty())
    throw ContentsError("{}: {}", lines.where(), problem);
  const Record record = Record::of_line(line, lines.where(), lines.only_texts());
  try {
    std::optional<Example> e = read(record);
    if (e && e->id.empty() && record.has("id")) e->id = record.json("id");
    return e;
  } catch (const ContentsError& error) {
    const std::string what = error.what();
    if (what.starts_with(record.where())) throw;
    record.fail(what);
  }
}

void write_records(const std::string& path, const std::vector<std::string>& files, const OpenLines& open,
                   bool skip_bad, const ReadRecord& read) {
  RecordWriter writer(path);
  RecordLines lines = open();
  for (std::string line; lines.next(line);) {
    try {
      if (auto e = read_line(lines, line, read)) writer.add(std::move(*e));
    } catch (const ContentsError& error) {
      if (!skip_bad) throw ContentsError("{}; data.skip_bad=true skips and counts such lines", error.what());
      const std::string why = error.what(), &name = files.at(lines.file());
      writer.add_bad(lines.file(), why.starts_with(name + ":") ? why.substr(name.size() + 1) : why);
    }
  }
  writer.finish(words_of_files(files), files);
}

CachedIndex facts_of(const RecordFile& f) {
  CachedIndex c;
  c.unit = "example";
  c.examples = f.size();
  c.tokens = f.n_tokens();
  return c;
}

// The path of the records' file, which is built unless the cache has it. settings: null: JSONL.
std::string build_records(const DataRequest& request, const DataSettings* settings, const ReadRecord& read) {
  const double begin = seconds();
  const std::vector<std::string> files = data_files(request.files, request.evaluation, request.cache);
  const OpenLines open = [&] { return settings ? RecordLines(files, *settings) : RecordLines(files); };
  Hasher hasher;
  put(hasher, request.fingerprint);
  put(hasher, request.skip_bad);
  RecordLines lines = open();
  for (std::string line; lines.next(line);) put(hasher, line);
  const std::string path = index_path(request.cache, hasher.digest128(), "records");
  return find_or_build<RecordFile>(
      path, begin, [&] { write_records(path, files, open, request.skip_bad, read); }, facts_of);
}

std::shared_ptr<const Dataset> open_records(const DataRequest& request, const DataSettings* settings,
                                            const ReadRecord& read) {
  return open_indexed({.build = [&] { return build_records(request, settings, read); },
                       .open =
                           [&](const std::string& path) {
                             return std::make_shared<RecordFile>(
                                 path, data_file_names(request.files, request.evaluation, request.cache));
                           }});
}

}  // namespace

std::shared_ptr<const Dataset> spool_examples(const DataRequest& request, const std::string& key,
                                              const std::function<std::optional<Example>()>& next) {
  const auto build = [&] {
    const double begin = seconds();
    Hasher hasher;
    put(hasher, request.fingerprint);
    put(hasher, request.evaluation);
    put(hasher, "spooled " + key);
    for (const std::string& f : request.files) put(hasher, f);
    const std::string path = index_path(request.cache, hasher.digest128(), "records");
    if (key.empty()) remove_file(path);
    return find_or_build<RecordFile>(
        path, begin,
        [&] {
          RecordWriter writer(path);
          while (auto e = next()) writer.add(std::move(*e));
          writer.finish("the pipeline's open()");
        },
        facts_of);
  };
  return open_indexed(
      {.build = build, .open = [](const std::string& path) { return std::make_shared<RecordFile>(path); }});
}
std::shared_ptr<const Dataset> read_jsonl(const DataRequest& request, const ReadRecord& read) {
  return open_records(request, nullptr, read);
}
std::shared_ptr<const Dataset> read_records(const DataRequest& request, const DataSettings& settings,
                                            const ReadRecord& read) {
  return open_records(request, &settings, read);
}

}  // namespace redco
