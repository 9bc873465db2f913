#include "data/text/record_lines.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/jsonl.h"
#include "base/words.h"
#include "data/arrow/arrow_rows.h"
#include "data/labelled/table_reader.h"
#include "data/parquet/parquet_rows.h"
#include "data/text/article_questions.h"
#include "data/text/conll_sentences.h"
#include "data/text/record_map.h"
#include "data/text/webdataset.h"

namespace redco {

class RecordLines::File {
 public:
  virtual ~File() = default;
  virtual bool next(std::string& json) = 0;
  virtual std::string where() const = 0;
  virtual i64 line_number() const = 0;
  virtual u64 stored_position() const = 0;
  virtual std::string problem() const { return ""; }
  virtual bool only_texts() const { return false; }
};

namespace {

using Json = nlohmann::ordered_json;
using RecordFile = RecordLines::File;

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// A list of texts as the row of a table without header: {"1": ..., "2": ...}. Other records stay.
void number_texts(std::string& json) {
  if (!json.starts_with('[')) return;
  const Json list = Json::parse(json, nullptr, false);
  if (!list.is_array() || list.empty() ||
      !std::ranges::all_of(list, [](const Json& x) { return x.is_string(); }))
    return;
  Json row = Json::object();
  for (const Json& text : list) row[std::to_string(row.size() + 1)] = text;
  json = dump(row);
}

// The objects of a reader that gives them as texts.
template <class Reader>
class ObjectFile : public RecordFile {
 public:
  explicit ObjectFile(const std::string& path) : reader_(path) {}
  bool next(std::string& json) override {
    if (!reader_.next(json)) return false;
    number_texts(json);
    return true;
  }
  std::string where() const override { return reader_.where(); }
  i64 line_number() const override { return reader_.line_number(); }
  u64 stored_position() const override { return reader_.stored_position(); }

 protected:
  Reader reader_;
};

// The same of a reader that also says why the last object is bad.
template <class Reader>
class JudgedFile : public ObjectFile<Reader> {
 public:
  using ObjectFile<Reader>::ObjectFile;
  std::string problem() const override { return this->reader_.problem(); }
};

// The table of a folder of images or recordings of the library datasets: file_name is the file, text its
// caption.
class ImageTable : public RecordFile {
 public:
  explicit ImageTable(std::unique_ptr<RecordFile> table) : table_(std::move(table)) {}
  bool next(std::string& json) override {
    if (!table_->next(json)) return false;
    Json row = Json::parse(json, nullptr, false);
    if (!row.is_object() || !row.contains("file_name")) return true;
    for (const auto& [name, usual] :
         {std::pair("file_name", "image"), std::pair("file_name", "audio"), std::pair("text", "caption")})
      if (row.contains(name) && !row.contains(usual)) row[usual] = Json(row[name]);
    json = dump(row);
    return true;
  }
  std::string where() const override { return table_->where(); }
  i64 line_number() const override { return table_->line_number(); }
  u64 stored_position() const override { return table_->stored_position(); }
  std::string problem() const override { return table_->problem(); }
  bool only_texts() const override { return table_->only_texts(); }

 private:
  std::unique_ptr<RecordFile> table_;
};

class TextFile : public RecordFile {
 public:
  explicit TextFile(const std::string& path) : lines_(path) {}
  bool next(std::string& json) override {
    std::string line;
    if (!lines_.next(line)) return false;
    json = dump({{"text", line}});
    return true;
  }
  std::string where() const override { return lines_.where(); }
  i64 line_number() const override { return lines_.line_number(); }
  u64 stored_position() const override { return lines_.stored_position(); }

 private:
  JsonLines lines_;  // of any text
};

class TableFile : public RecordFile {
 public:
  TableFile(const std::string& path, TableReader::Kind kind, bool header)
      : rows_(path, kind), header_(header) {}
  bool next(std::string& json) override {
    std::vector<std::string> cells;
    if (!rows_.next(cells)) return false;
    if (names_.empty()) {
      set_names(cells);
      if (header_ && !rows_.next(cells)) return false;
    }
    problem_.clear();
    if (cells.size() != names_.size()) {
      problem_ = fmt::format("the row has {}, but the first row has {}", counted(cells.size(), "cell"),
                             names_.size());
      json = dump(cells);
      return true;
    }
    Json row = Json::object();
    for (std::size_t k = 0; k < cells.size(); ++k) row[names_[k]] = std::move(cells[k]);
    json = dump(row);
    return true;
  }
  std::string where() const override { return rows_.where(); }
  i64 line_number() const override { return rows_.line_number(); }
  u64 stored_position() const override { return rows_.stored_position(); }
  std::string problem() const override { return problem_; }
  bool only_texts() const override { return true; }

 private:
  void set_names(const std::vector<std::string>& first) {
    std::set<std::string> seen;
    for (std::size_t k = 0; k < first.size(); ++k) {
      names_.push_back(header_ ? first[k] : std::to_string(k + 1));
      if (!seen.insert(names_.back()).second)
        throw UsageError("[data] {}: two columns have the name '{}'. Rename one, or set data.header: false",
                         where(), excerpt(names_.back()));
    }
  }

  TableReader rows_;
  bool header_;
  std::vector<std::string> names_;
  std::string problem_;  // of the last row
};

class ParallelFiles : public RecordFile {
 public:
  ParallelFiles(const std::string& source, const std::string& target)
      : names_{source, target}, source_(source), target_(target) {}
  bool next(std::string& json) override {
    std::string lines[2];
    const bool source = source_.next(lines[0]), target = target_.next(lines[1]);
    if (source && target) {
      json = dump({{"source", lines[0]}, {"target", lines[1]}});
      return true;
    }
    if (source != target)
      throw ContentsError(
          "{}: the file has more lines than {}. Line n of one file must belong to line n of the other",
          (source ? source_ : target_).where(), names_[source]);
    return false;
  }
  std::string where() const override { return source_.where(); }
  i64 line_number() const override { return source_.line_number(); }
  u64 stored_position() const override { return source_.stored_position() + target_.stored_position(); }

 private:
  std::string names_[2];
  LineReader source_, target_;
};

// Without a setting: unless a field is a column number.
bool has_header(const DataSettings& s) {
  const ExampleFields& f = s.fields;
  const auto number = [](const std::optional<std::string>& key) { return key && is_column_number(*key); };
  return s.header.value_or(!number(f.text) && !number(f.prompt) && !number(f.completion) &&
                           !number(f.messages) && !number(f.instruction) && !number(f.output) &&
                           !number(f.conversations));
}

std::unique_ptr<RecordFile> open_record_file(const std::string& path, const std::string& format,
                                             bool header) {
  if (format == "jsonl") return std::make_unique<ObjectFile<JsonLines>>(path);
  if (format == "json") return std::make_unique<ObjectFile<ArticleQuestions>>(path);
  if (format == "conll") return std::make_unique<JudgedFile<ConllSentences>>(path);
  if (format == "webdataset") return std::make_unique<JudgedFile<WebdatasetSamples>>(path);
  if (format == "parquet") return std::make_unique<ObjectFile<ParquetRows>>(path);
  if (format == "arrow") return std::make_unique<ObjectFile<ArrowRows>>(path);
  if (format == "text") return std::make_unique<TextFile>(path);
  return std::make_unique<TableFile>(path, TableReader::kind_of(format), header);
}

}  // namespace

struct RecordLines::State {
  std::vector<std::string> files, formats;  // parallel: one format for two files
  bool header = true;
  std::size_t next_file = 0, file = 0;
  std::unique_ptr<File> reader;  // of the last record
  u64 done = 0;                  // bytes of the files before it
  std::optional<RecordMap> map;
  std::string problem;  // of the last record, found by the map

  void open_next() {
    if (reader) done += reader->stored_position();
    file = next_file;
    if (formats[file] == "parallel") {
      reader = std::make_unique<ParallelFiles>(files[file], files[file + 1]);
      next_file += 2;
    } else {
      reader = open_record_file(files[file], formats[file], header);
      if (is_image_table(files[file])) reader = std::make_unique<ImageTable>(std::move(reader));
      ++next_file;
    }
  }
};

bool is_image_table(const std::string& path) {
  return file_name(name_unpacked(path)).starts_with("metadata.");
}

RecordLines::RecordLines(std::vector<std::string> files) : state_(std::make_unique<State>()) {
  for (const std::string& f : files) {
    const std::string format = format_by_name(f);
    state_->formats.push_back(format.empty() || format == "text" ? "jsonl" : format);
  }
  state_->files = std::move(files);
}

RecordLines::RecordLines() : state_(std::make_unique<State>()) {}

RecordLines RecordLines::of_prompts(std::vector<std::string> files, const DataSettings& s) {
  RecordLines lines;
  for (const std::string& file : files) {
    std::string format = format_by_name(file);
    if ((format.empty() || format == "text") && s.format && *s.format != "text" && *s.format != "parallel")
      format = *s.format;
    lines.state_->formats.push_back(format.empty() ? "jsonl" : format);
  }
  lines.state_->files = std::move(files);
  lines.state_->header = has_header(s);
  lines.state_->map.emplace(s, false);
  return lines;
}

RecordLines::RecordLines(std::vector<std::string> files, const DataSettings& s)
    : state_(std::make_unique<State>()) {
  for (const std::string& f : files) {
    state_->formats.push_back(s.format_of({f}));
    if (state_->formats.back() == "text")
      throw UsageError(
          "[data] {}: records need one of the formats jsonl, json, csv, tsv, parquet, arrow, webdataset, conll (words with a "
          "tag, one per line) and parallel (pairs of files). The format is known from the ending of the name; for "
          "another name set data.format",
          f);
  }
  if (s.format == "parallel" && files.size() % 2 != 0)
    throw UsageError("[data] data.format=parallel needs pairs of files, the source first, but got {}: {}",
                     counted(files.size(), "file"), fmt::join(files, ", "));
  state_->header = has_header(s);
  state_->map.emplace(s, true);
  state_->files = std::move(files);
}
RecordLines::RecordLines(RecordLines&&) noexcept = default;
RecordLines::~RecordLines() = default;

bool RecordLines::next(std::string& json) {
  State& s = *state_;
  for (;;) {
    if (s.reader && s.reader->next(json)) {
      s.problem = s.reader->problem();
      if (!s.map || !s.problem.empty() || s.map->apply(json, s.problem)) return true;
    } else {
      if (s.next_file == s.files.size()) {
        if (s.map) s.map->finish();
        return false;
      }
      s.open_next();
    }
  }
}
std::string RecordLines::where() const { return state_->reader->where(); }
i64 RecordLines::line_number() const { return state_->reader->line_number(); }
std::size_t RecordLines::file() const { return state_->file; }
u64 RecordLines::stored_position() const {
  return state_->done + (state_->reader ? state_->reader->stored_position() : 0);
}
std::string RecordLines::problem() const { return state_->problem; }
bool RecordLines::only_texts() const { return state_->reader->only_texts(); }

bool FileRecords::next(ExampleRecord& r) {
  if (!lines_.next(r.text)) return false;
  r.line = static_cast<u64>(lines_.line_number());
  r.file = static_cast<u32>(lines_.file());
  r.target.reset();
  r.blank = false;
  r.bad = lines_.problem();
  return true;
}

}  // namespace redco
