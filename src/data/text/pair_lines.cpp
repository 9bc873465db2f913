#include "data/text/pair_lines.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/words.h"
#include "data/index/source_files.h"
#include "data/labelled/table_reader.h"
#include "data/text/example_json.h"
#include "data/text/example_shapes.h"
#include "data/text/record_filter.h"
#include "data/text/record_lines.h"
#include "data/text/record_map.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

// Rows of tables. Each file has its own header.
class TableRecords : public ExampleRecords {
 public:
  TableRecords(std::vector<std::string> paths, PairSettings s) : paths_(std::move(paths)), s_(std::move(s)) {}

  bool next(ExampleRecord& r) override {
    for (; file_ < paths_.size(); ++file_) {
      if (!table_) open();
      if (pending_ || table_->next(cells_)) {
        pending_ = false;
        take(r);
        return true;
      }
      done_ += table_->stored_position();
      table_.reset();
    }
    return false;
  }
  u64 stored_position() const override { return done_ + (table_ ? table_->stored_position() : 0); }

 private:
  void open() {
    table_ = std::make_unique<TableReader>(paths_[file_], TableReader::kind_of(s_.format));
    if (!table_->next(cells_)) return;
    const bool header =
        s_.header.value_or(!is_column_number(s_.fields.source) || !is_column_number(s_.fields.target));
    const std::vector<std::string>* names = header ? &cells_ : nullptr;
    columns_ = cells_.size();
    source_ = find_column(s_.fields.source, names, "data.fields.source", table_->where());
    target_ = find_column(s_.fields.target, names, "data.fields.target", table_->where());
    pending_ = !header;
  }
  void take(ExampleRecord& r) {
    r.file = static_cast<u32>(file_);
    r.line = static_cast<u64>(table_->line_number());
    const auto cell = [&](std::size_t i) { return i < cells_.size() ? std::move(cells_[i]) : std::string(); };
    if (cells_.size() != columns_) {
      r.bad =
          fmt::format("the row has {}, but the first row has {}", counted(cells_.size(), "cell"), columns_);
    } else if (const std::size_t last = std::max(source_, target_); last >= columns_) {
      throw UsageError("[data] data.fields.{}={}: the rows of {} have {}",
                       last == source_ ? "source" : "target", last + 1, paths_[file_],
                       counted(columns_, "column"));
    }
    r.target = source_ == target_ ? std::string(cells_[target_]) : cell(target_);
    r.text = cell(source_);
  }

  std::vector<std::string> paths_, cells_;
  PairSettings s_;
  std::unique_ptr<TableReader> table_;
  std::size_t file_ = 0, columns_ = 0, source_ = 0, target_ = 0;
  bool pending_ = false;
  u64 done_ = 0;
};

// Lines of two parallel files.
class ParallelRecords : public ExampleRecords {
 public:
  explicit ParallelRecords(std::vector<std::string> paths) : paths_(std::move(paths)) {}

  bool next(ExampleRecord& r) override {
    for (; file_ < paths_.size(); file_ += 2) {
      if (!sources_) {
        sources_ = std::make_unique<LineReader>(paths_[file_]);
        targets_ = std::make_unique<LineReader>(paths_[file_ + 1]);
      }
      const bool source = sources_->next(r.text), target = targets_->next(r.target.emplace());
      r.file = static_cast<u32>(file_);
      r.line = static_cast<u64>((source ? sources_ : targets_)->line_number());
      if (source && target) {
        if (is_blank(*r.target))
          r.bad = fmt::format("the target, line {} of the second file, is empty", r.line);
        return true;
      }
      if (source != target)
        throw ContentsError(
            "{} ends after {} line{}, but {} has more. Line n of one file must belong to line n of the other",
            paths_[file_ + source], r.line - 1, r.line == 2 ? "" : "s", paths_[file_ + target]);
      done_ += sources_->stored_position() + targets_->stored_position();
      sources_.reset();
      targets_.reset();
    }
    return false;
  }
  u64 stored_position() const override {
    return done_ + (sources_ ? sources_->stored_position() + targets_->stored_position() : 0);
  }

 private:
  std::vector<std::string> paths_;
  std::unique_ptr<LineReader> sources_, targets_;
  std::size_t file_ = 0;
  u64 done_ = 0;
};

const std::string& required_text(const Json& j, const std::string& key) {
  const Json* v = value_at(j, key);
  if (!v) {
    std::vector<std::string> keys;
    for (const auto& [name, value] : j.items())
      if (keys.size() < 8) keys.push_back(name);
    throw ContentsError("no \"{}\"; its keys are {} (data.fields renames them)", key,
                        keys.empty() ? "none" : excerpt(fmt::format("{}", fmt::join(keys, ", "))));
  }
  return as_text(*v, key);
}

i64 length_of(const char* key, const std::optional<i64>& own, i64 max_length, i64 limit) {
  const i64 length = own.value_or(max_length);
  if (length < 1) throw UsageError("[data] {} is missing, and the model has no maximum length; set it", key);
  if (length > limit)
    throw UsageError("[data] {}={} is more than the model's {} positions", own ? key : "data.max_length",
                     length, limit);
  return length;
}

// As the data settings say it.
DataSettings records_of(const PairSettings& s) {
  DataSettings d;
  d.format = s.format;
  d.fields = s.fields;
  d.header = s.header;
  d.where = s.where;
  return d;
}

}  // namespace

std::string pair_format(const DataSettings& d, const std::vector<std::string>& files) {
  const std::string format = d.format_of(files);
  if (format == "text")
    throw UsageError(
        "[data] {}: text pairs need one of the formats jsonl, json, tsv, csv, parquet and arrow, the same for all "
        "files, or data.format=parallel (pairs of files, the source first)",
        files.empty() ? "no file" : files.front());
  return format;
}

PairSettings PairSettings::of(const DataSettings& d, i64 max_length, i64 limit) {
  PairSettings s;
  s.fields = d.fields;
  s.header = d.header;
  s.where = d.where;
  s.source_prefix = d.source_prefix;
  s.max_source_length = length_of("data.max_source_length", d.max_source_length, max_length, limit);
  s.max_target_length = length_of("data.max_target_length", d.max_target_length, max_length, limit);
  return s;
}

std::unique_ptr<ExampleRecords> open_pairs(const std::vector<std::string>& paths, const PairSettings& s) {
  const DataSettings d = records_of(s);
  const bool rewrites = RecordMap(d, true).rewrites();
  if (rewrites && s.format == "parallel")
    throw UsageError("[data] data.where and templates need records with keys; data.format=parallel has none");
  const bool described = std::ranges::any_of(paths, is_image_table);
  if (s.format == "jsonl" && !rewrites && !described) return std::make_unique<LineRecords>(paths);
  const bool table = s.format == "csv" || s.format == "tsv";
  if (table && !s.whole_records && !rewrites && !described) return std::make_unique<TableRecords>(paths, s);
  if (s.format != "parallel") return std::make_unique<FileRecords>(paths, d);
  if (paths.size() % 2 != 0)
    throw UsageError("[data] data.format=parallel needs pairs of files, the source first, but got {}: {}",
                     counted(paths.size(), "file"), fmt::join(paths, ", "));
  return std::make_unique<ParallelRecords>(paths);
}

std::vector<i32> PairLines::source_ids(std::string_view text, bool* cut) const {
  const std::string whole = settings_.source_prefix + std::string(text);
  std::vector<i32> ids = tokenizer_.encode(whole);
  if (static_cast<i64>(ids.size()) <= settings_.max_source_length) return ids;
  if (cut) *cut = true;
  return tokenizer_.encode_truncated(whole, settings_.max_source_length).ids;
}

std::vector<i32> PairLines::target_ids(std::string_view text, bool* cut) const {
  const Tokenizer& tokenizer = tokenizer_.target();
  std::vector<i32> ids = tokenizer.encode(text);
  const auto eos = tokenizer.special().eos;
  // mBART's targets end with the end token and the language's code.
  const bool ends = eos && std::find(ids.end() - std::min<std::ptrdiff_t>(2, std::ssize(ids)), ids.end(),
                                     *eos) != ids.end();
  const i64 most = settings_.max_target_length - (eos && !ends ? 1 : 0);
  if (static_cast<i64>(ids.size()) > most) {
    *cut = true;
    ids = most > 0 ? tokenizer.encode_truncated(text, most).ids : std::vector<i32>();
  }
  if (eos && !ends) ids.push_back(*eos);
  return ids;
}

TokenizedExample PairLines::read(const ExampleRecord& r) const {
  TokenizedExample e;
  e.kind = ExampleKind::completion;
  std::string source = r.text, target = r.target.value_or("");
  if (!r.target) {
    const Json j = parse_example_line(r.text);
    source = required_text(j, settings_.fields.source);
    target = required_text(j, settings_.fields.target);
    if (const Json* id = settings_.fields.id ? value_at(j, *settings_.fields.id) : nullptr) e.id = id->dump();
  }
  if (is_blank(source)) throw ContentsError("the source is empty");
  if (is_blank(target)) throw ContentsError("the target is empty");
  e.ids = source_ids(source, &e.cut);
  e.prompt_tokens = static_cast<i64>(e.ids.size());
  const std::vector<i32> labels = target_ids(target, &e.cut);
  if (e.ids.empty() || labels.empty())
    throw ContentsError("the {} has no tokens after tokenization", e.ids.empty() ? "source" : "target");
  e.ids.insert(e.ids.end(), labels.begin(), labels.end());
  e.in_loss.assign(e.ids.size(), 1);
  std::fill_n(e.in_loss.begin(), e.prompt_tokens, std::uint8_t{0});
  e.reference = std::move(target);
  return e;
}

std::string PairLines::source_of(const std::string& json) const {
  const Json j = parse_example_line(json);
  for (const std::string& key : {settings_.fields.source, std::string("prompt"), std::string("text")}) {
    if (!value_at(j, key)) continue;
    const std::string& text = required_text(j, key);
    if (is_blank(text)) throw ContentsError("\"{}\" is empty", key);
    return text;
  }
  return required_text(j, settings_.fields.source);  // throws, and the error lists the keys
}

std::string PairLines::fingerprint() const {
  Hasher h;
  put(h, kPairVersion);
  put(h, tokenizer_.fingerprint());
  put(h, static_cast<u64>(tokenizer_.special().eos.value_or(-1)));
  put(h, settings_.format);
  for (const std::string& key : {settings_.fields.source, settings_.fields.target}) put(h, key);
  put(h, settings_.fields.id ? "=" + *settings_.fields.id : "");
  put(h, static_cast<u64>(settings_.header ? 1 + *settings_.header : 0));
  put(h, settings_.source_prefix);
  put(h, static_cast<u64>(settings_.max_source_length));
  put(h, static_cast<u64>(settings_.max_target_length));
  if (const RecordMap map(records_of(settings_), true); map.rewrites()) put(h, map.fingerprint());
  return h.digest128().hex();
}

}  // namespace redco
