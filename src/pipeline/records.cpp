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
#include "data/text/record_lines.h"
#include "pipeline/indexed_data.h"

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
  if (it == object.end() || it->is_null()) {
    std::vector<std::string> keys;
    for (const auto& [name, value] : object.items()) keys.push_back(name);
    const std::string near = nearest(key, keys);
    r.fail(fmt::format("no \"{}\"{}", key, near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near)));
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

// The file: kMagic; the hash of the examples, 32 digits; the examples as JSON texts, one after another; the
// first bad lines and their reasons; a table with a Place for each example; RecordFileEnd.
constexpr std::string_view kMagic = "redco records 2\n";
constexpr u64 kBadLinesShown = 5;
struct RecordFileEnd {
  u64 examples = 0, table = 0;       // offset of the table
  u64 bad_lines = 0, bad_bytes = 0;  // number of bad lines, size of their text in front of the table
};
struct Place {
  u64 offset = 0;
  i64 bytes = 0, length = 0;
};

class RecordFile : public Dataset {
 public:
  static RecordFile open(const std::string& path) {
    RecordFile f(ReadFile::open(path));
    const i64 size = f.file_.size(), head = static_cast<i64>(kMagic.size()) + 32;
    std::string begin(static_cast<std::size_t>(head), '\0');
    RecordFileEnd end;
    if (size < head + static_cast<i64>(sizeof end)) f.damaged();
    f.file_.pread_exact(0, begin.data(), head);
    f.file_.pread_exact(size - static_cast<i64>(sizeof end), &end, sizeof end);
    const u64 end_of_table = static_cast<u64>(size) - sizeof end;
    if (!begin.starts_with(kMagic) || end.examples > end_of_table / sizeof(Place) ||
        end.table + end.examples * sizeof(Place) != end_of_table || end.bad_bytes > end.table)
      f.damaged();
    f.hash_ = begin.substr(kMagic.size());
    f.places_.resize(end.examples);
    f.file_.pread_exact(static_cast<i64>(end.table), f.places_.data(),
                        static_cast<i64>(end.examples * sizeof(Place)));
    f.n_bad_ = end.bad_lines;
    f.bad_.resize(end.bad_bytes);
    f.file_.pread_exact(static_cast<i64>(end.table - end.bad_bytes), f.bad_.data(),
                        static_cast<i64>(end.bad_bytes));
    return f;
  }
  void verify() const {}  // open() reads the end of the file, which is written last

  i64 size() const override { return static_cast<i64>(places_.size()); }
  i64 length(i64 i) const override { return places_[static_cast<std::size_t>(i)].length; }
  Example get(i64 i) const override {
    const Place& p = places_[static_cast<std::size_t>(i)];
    std::string text(static_cast<std::size_t>(p.bytes), '\0');
    file_.pread_exact(static_cast<i64>(p.offset), text.data(), p.bytes);
    Example e = examples_from_json(text).at(0);
    e.ordinal = i;
    return e;
  }
  std::string fingerprint() const override { return hash_; }
  Reading reading() const override { return Reading::threads; }
  std::string describe() const override {
    i64 longest = 0;
    for (const Place& p : places_) longest = std::max(longest, p.length);
    std::string s =
        fmt::format("{} of at most {}", counted(places_.size(), "example"), counted(longest, "token"));
    if (n_bad_ > 0)
      s += fmt::format("\n{} skipped (data.skip_bad); the first:{}", counted(n_bad_, "bad line"), bad_);
    return s;
  }

 private:
  explicit RecordFile(ReadFile file) : file_(std::move(file)) {}
  [[noreturn]] void damaged() const {
    throw ContentsError("[data] {} is damaged. Remove it; it will be built again", file_.path());
  }
  ReadFile file_;
  std::string hash_;
  std::vector<Place> places_;
  u64 n_bad_ = 0;
  std::string bad_;  // the first of them, each after "\n  "
};

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

// Writes a file of records.
class RecordWriter {
 public:
  explicit RecordWriter(const std::string& path) : file_(DurableFile::create(path)) {
    append(kMagic.data(), kMagic.size());
    append(std::string(32, '0').data(), 32);
  }
  void add(Example e) {
    Place& p = places_.emplace_back(Place{.offset = at_});
    p.length = longest_ids(e);
    const std::string text = examples_to_json({std::move(e)});
    p.bytes = static_cast<i64>(text.size());
    append(text.data(), text.size());
    hasher_.update(text.data(), text.size());
  }
  void add_bad(const std::string& why) {
    if (end_.bad_lines++ < kBadLinesShown) bad_ += fmt::format("\n  {}", why);
  }
  // source: in the error for no examples.
  void finish(const std::string& source) {
    if (places_.empty())
      throw ContentsError(
          "[data] {} has no examples{}", source,
          end_.bad_lines == 0 ? "" : fmt::format("; {} bad lines, the first:{}", end_.bad_lines, bad_));
    append(bad_.data(), bad_.size());
    end_.bad_bytes = bad_.size();
    end_.examples = places_.size();
    end_.table = at_;
    append(places_.data(), places_.size() * sizeof(Place));
    append(&end_, sizeof end_);
    file_.pwrite(static_cast<i64>(kMagic.size()), hasher_.digest128().hex().data(), 32);
    file_.commit();
  }

 private:
  void append(const void* data, std::size_t n) {
    file_.append({static_cast<const char*>(data), n});
    at_ += n;
  }
  DurableFile file_;
  u64 at_ = 0;
  Hasher hasher_;
  std::vector<Place> places_;
  RecordFileEnd end_;
  std::string bad_;
};

void write_records(const std::string& path, const std::vector<std::string>& files, const OpenLines& open,
                   bool skip_bad, const ReadRecord& read) {
  RecordWriter writer(path);
  RecordLines lines = open();
  for (std::string line; lines.next(line);) {
    try {
      if (auto e = read_line(lines, line, read)) writer.add(std::move(*e));
    } catch (const ContentsError& error) {
      if (!skip_bad) throw ContentsError("{}; data.skip_bad=true skips and counts such lines", error.what());
      writer.add_bad(error.what());
    }
  }
  writer.finish(words_of_files(files));
}

CachedIndex facts_of(const RecordFile& f) {
  CachedIndex c;
  c.unit = "example";
  c.examples = f.size();
  for (i64 i = 0; i < f.size(); ++i) c.tokens += f.length(i);
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
  return open_indexed(
      {.build = [&] { return build_records(request, settings, read); },
       .open = [](const std::string& path) { return std::make_shared<RecordFile>(RecordFile::open(path)); }});
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
  return open_indexed({.build = build, .open = [](const std::string& path) {
                         return std::make_shared<RecordFile>(RecordFile::open(path));
                       }});
}
std::shared_ptr<const Dataset> read_jsonl(const DataRequest& request, const ReadRecord& read) {
  return open_records(request, nullptr, read);
}
std::shared_ptr<const Dataset> read_records(const DataRequest& request, const DataSettings& settings,
                                            const ReadRecord& read) {
  return open_records(request, &settings, read);
}

}  // namespace redco
