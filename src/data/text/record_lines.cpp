#include "data/text/record_lines.h"

#include <fmt/ranges.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/jsonl.h"
#include "base/words.h"
#include "data/labelled/table_reader.h"

namespace redco {

class RecordLines::Source {
 public:
  virtual ~Source() = default;
  virtual bool next(std::string& json) = 0;
  virtual std::string where() const = 0;
  virtual std::string problem() const { return ""; }
};

namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& j) { return j.dump(-1, ' ', false, Json::error_handler_t::replace); }

// One file after another. `Reader` reads one file; the reader of the last record stays for where().
template <class Reader>
class Files : public RecordLines::Source {
 public:
  Files(std::vector<std::string> files, std::function<Reader(const std::string&)> open)
      : files_(std::move(files)), open_(std::move(open)) {}
  bool next(std::string& json) override {
    for (;;) {
      if (reader_ && reader_->next(json)) return true;
      if (file_ == files_.size()) return false;
      reader_.emplace(open_(files_[file_++]));
    }
  }
  std::string where() const override { return reader_->where(); }
  std::string problem() const override {
    if constexpr (requires { reader_->problem(); }) return reader_->problem();
    return "";
  }

 private:
  std::vector<std::string> files_;
  std::function<Reader(const std::string&)> open_;
  std::size_t file_ = 0;
  std::optional<Reader> reader_;
};

class TableFile {
 public:
  TableFile(const std::string& path, TableReader::Kind kind, bool header)
      : rows_(path, kind), header_(header) {}
  bool next(std::string& json) {
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
  std::string where() const { return rows_.where(); }
  const std::string& problem() const { return problem_; }

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

class ParallelFiles : public RecordLines::Source {
 public:
  explicit ParallelFiles(std::vector<std::string> files) : files_(std::move(files)) {
    if (files_.size() % 2 != 0)
      throw UsageError("[data] data.format=parallel needs pairs of files, the source first, but got {}: {}",
                       counted(files_.size(), "file"), fmt::join(files_, ", "));
  }
  bool next(std::string& json) override {
    for (; file_ < files_.size(); file_ += 2) {
      if (!source_) {
        source_.emplace(files_[file_]);
        target_.emplace(files_[file_ + 1]);
      }
      std::string lines[2];
      const bool source = source_->next(lines[0]), target = target_->next(lines[1]);
      if (source && target) {
        json = dump({{"source", lines[0]}, {"target", lines[1]}});
        where_ = source_->where();
        return true;
      }
      if (source != target)
        throw ContentsError(
            "{}: the file has more lines than {}. Line n of one file must belong to line n of the other",
            (source ? source_ : target_)->where(), files_[file_ + source]);
      source_.reset();
      target_.reset();
    }
    return false;
  }
  std::string where() const override { return where_; }

 private:
  std::vector<std::string> files_;
  std::size_t file_ = 0;
  std::optional<LineReader> source_, target_;
  std::string where_;
};

std::unique_ptr<RecordLines::Source> open_records(std::vector<std::string> files, const std::string& format,
                                                  bool header) {
  if (format == "jsonl")
    return std::make_unique<Files<JsonLines>>(std::move(files),
                                              [](const std::string& f) { return JsonLines(f); });
  if (format == "tsv" || format == "csv") {
    const TableReader::Kind kind = TableReader::kind_of(format);
    return std::make_unique<Files<TableFile>>(
        std::move(files), [=](const std::string& f) { return TableFile(f, kind, header); });
  }
  if (format == "parallel") return std::make_unique<ParallelFiles>(std::move(files));
  throw UsageError("[data] {}: records need data.format jsonl, tsv, csv or parallel (pairs of files)",
                   files.empty() ? "no file" : files.front());
}

}  // namespace

RecordLines::RecordLines(std::vector<std::string> files)
    : format_("jsonl"), source_(open_records(std::move(files), format_, true)) {}
RecordLines::RecordLines(std::vector<std::string> files, const DataSettings& s)
    : format_(s.format_of(files)),
      source_(open_records(std::move(files), format_, s.header.value_or(true))) {}
RecordLines::RecordLines(RecordLines&&) noexcept = default;
RecordLines::~RecordLines() = default;

bool RecordLines::next(std::string& json) { return source_->next(json); }
std::string RecordLines::where() const { return source_->where(); }
std::string RecordLines::problem() const { return source_->problem(); }

}  // namespace redco
