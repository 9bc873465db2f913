#include "data/labelled/labelled_index.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/ordered_work.h"
#include "base/process.h"
#include "base/words.h"
#include "data/index/cached_index.h"
#include "data/index/index_file.h"
#include "data/text/record_map.h"

namespace redco {

namespace {

using Json = nlohmann::ordered_json;

constexpr IndexFormat kLabelledFormat = {
    {'r', 'e', 'd', 'c', 'o', 'L', 'B', 'L'}, kLabelledIndexVersion, "index of labelled examples"};

struct LabelledFacts {
  u64 n_examples, n_tokens, longest, truncated;
  u64 directory;  // of the table
};

struct Entry {
  u64 offset;
  u64 bytes;  // of its record
  u64 line;
  u32 tokens;
  u32 file;
};
static_assert(sizeof(Entry) == 32);

struct LabelledRecordHeader {
  u32 ids, types, values, targets, text, id;
};

Hash128 key_of(const LabelledSource& s, const SourceFiles& files) {
  Hasher h;
  put(h, kLabelledIndexVersion);
  for (const std::string& p : s.paths) put(h, s.data.format_of({p}));  // as LabelledReader reads it
  const ExampleFields& f = s.data.fields;
  for (const auto& name : {f.text.value_or(""), f.text_pair, f.id.value_or("")}) put(h, name);
  for (const auto* names : {&f.label, &f.features}) {
    put(h, names->size());
    for (const std::string& n : *names) put(h, n);
  }
  put(h, s.data.header ? 1 + *s.data.header : 0);
  put(h, s.data.too_long.value_or(""));
  put(h, s.data.skip_bad);
  put(h, static_cast<u64>(s.input));
  put(h, s.tokenizer ? s.tokenizer->fingerprint() : "");
  if (s.several) put(h, std::string("several, numbers between commas"));
  for (const i64 n : {s.max_length, s.n_features, s.n_targets}) put(h, static_cast<u64>(n));
  put(h, s.classes ? s.classes->names().size() : 0);
  if (s.classes)
    for (const std::string& n : s.classes->names()) put(h, n);
  if (const RecordMap map(s.data, true); map.rewrites()) put(h, map.fingerprint());
  files.put_into(h);
  return h.digest128();
}

std::vector<float> targets_of(const LabelledRow& row, const LabelledSource& s) {
  if (s.several) {
    std::vector<float> out(s.classes->names().size(), 0);
    for (const std::string& l : several_labels(row, s.data))
      out[static_cast<std::size_t>(s.classes->number_of(l))] = 1;
    return out;
  }
  const i64 expected = s.classes ? 1 : s.n_targets;
  if (static_cast<i64>(row.label.size()) != expected)
    throw ContentsError("{}, but {} {} expected", counted(row.label.size(), "label"), expected,
                        expected == 1 ? "is" : "are");
  std::vector<float> out;
  for (const std::string& l : row.label)
    out.push_back(s.classes ? static_cast<float>(s.classes->number_of(l)) : parse_number(l, "the label"));
  return out;
}

std::string text_of(const LabelledRow& row, LabelledInput input) {
  Json j;
  if (input == LabelledInput::vector) {
    for (const float x : row.features)
      j["features"].push_back(std::stod(fmt::format("{}", x)));  // with the digits of the file
  } else {
    j["text"] = row.text;
    if (row.text_pair) j["text_pair"] = *row.text_pair;
  }
  return j.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Rows to tokenize.
struct Rows {
  struct Row {
    LabelledRow row;
    std::string where;
  };
  std::vector<Row> rows;
  u32 file = 0;
};
struct Examples {
  struct One {
    LabelledExample example;
    u64 line;
    std::string bad;
    bool skipped = false;
  };
  std::vector<One> examples;
  u32 file = 0;
};
constexpr std::size_t kLabelledBytesTogether = std::size_t{256} << 10;  // bytes

Examples make_examples(const LabelledSource& s, const Rows& in) {
  Examples out;
  out.file = in.file;
  for (const auto& [row, where] : in.rows) {
    Examples::One& one = out.examples.emplace_back();
    one.line = static_cast<u64>(row.line);
    one.bad = row.bad;
    if (!row.bad.empty()) continue;
    try {
      one.example = labelled_input(row, s);
      one.example.targets = targets_of(row, s);
      one.skipped = one.example.truncated && s.data.too_long.value_or("") == "skip";
    } catch (const ContentsError& e) {
      one.bad = fmt::format("{}: {}", where, e.what());
    }
  }
  return out;
}

template <class T>
void put_all(std::string& to, const std::vector<T>& from) {
  to.append(reinterpret_cast<const char*>(from.data()), from.size() * sizeof(T));
}

// "12: reason" of "a.csv:12: reason".
std::string without_name(const std::string& bad, const std::string& name) {
  return bad.starts_with(name + ":") ? bad.substr(name.size() + 1) : bad;
}

class Writer {
 public:
  Writer(const std::string& path, const LabelledSource& s)
      : source_(s), index_(path, kLabelledFormat, sizeof(LabelledFacts)), table_(index_.file()) {}

  void add(const Examples& in) {
    for (const Examples::One& one : in.examples) {
      if (!one.bad.empty()) {
        skip_or_throw(one.bad, source_.data);
        index_.add_bad(in.file, without_name(one.bad, source_.paths[in.file]));
      } else {
        facts.truncated += one.example.truncated;
        if (!one.skipped) add(one.example, one.line, in.file);
      }
    }
  }

  void finish() {
    if (table_.size() == 0)
      throw ContentsError("{}: the files have no examples{}", words_of_files(source_.paths),
                          index_.describe_bad(source_.paths));
    facts.n_examples = table_.size();
    facts.directory = table_.finish();
    index_.finish(data_.digest128(), facts);
  }

  LabelledFacts facts{};

 private:
  void add(const LabelledExample& e, u64 line, u32 file) {
    const auto n = [](const auto& v) { return static_cast<u32>(v.size()); };
    const LabelledRecordHeader r{n(e.ids), n(e.types), n(e.values), n(e.targets), n(e.text), n(e.id)};
    std::string record(reinterpret_cast<const char*>(&r), sizeof r);
    put_all(record, e.ids);
    put_all(record, e.types);
    put_all(record, e.values);
    put_all(record, e.targets);
    record += e.text;
    record += e.id;
    put(data_, record);
    table_.add({index_.file().append(record), record.size(), line, n(e.ids), file});
    facts.n_tokens += e.ids.size();
    facts.longest = std::max<u64>(facts.longest, e.ids.size());
  }

  const LabelledSource& source_;
  IndexWriter index_;
  TableWriter<Entry> table_;
  Hasher data_;
};

}  // namespace

LabelledExample labelled_input(const LabelledRow& row, const LabelledSource& s) {
  LabelledExample e;
  e.text = text_of(row, s.input);
  e.id = row.id;
  if (s.input == LabelledInput::vector) {
    if (s.n_features > 0 && static_cast<i64>(row.features.size()) != s.n_features)
      throw ContentsError("{} numbers, but the model needs {}", row.features.size(), s.n_features);
    e.values = row.features;
    return e;
  }
  const Tokenizer& t = *s.tokenizer;
  const auto encode = [&](std::optional<i64> most) {
    if (row.text_pair) return t.encode_pair(row.text, *row.text_pair, most);
    if (most) return t.encode_truncated(row.text, *most);
    Encoding whole;
    whole.ids = t.encode(row.text);
    whole.type_ids.assign(whole.ids.size(), 0);
    return whole;
  };
  Encoding tokens = encode({});
  if (static_cast<i64>(tokens.ids.size()) > s.max_length) {
    if (s.data.too_long.value_or("") == "error")
      throw ContentsError("{} tokens, more than data.max_length={}", tokens.ids.size(), s.max_length);
    tokens = encode(s.max_length);
    e.truncated = true;
  }
  if (tokens.ids.empty()) throw ContentsError("the text has no tokens after tokenization");
  e.ids = std::move(tokens.ids);
  e.types.assign(tokens.type_ids.begin(), tokens.type_ids.end());
  return e;
}

namespace {

void write_labelled_index(const std::string& path, const LabelledSource& source, const SourceFiles& files,
                          const BuildProgress& progress) {
  Writer writer(path, source);
  OrderedWork<Rows, Examples> work(
      usable_cpus(), [&](Rows rows, int) { return make_examples(source, rows); },
      [&](Examples e) { writer.add(e); });
  i64 done = 0;
  for (std::size_t k = 0; k < source.paths.size(); ++k) {
    LabelledReader reader(source.paths[k], source.data, source.input);
    Rows together;
    std::size_t bytes = 0;
    const auto hand_over = [&] {
      together.file = static_cast<u32>(k);
      work.add(std::exchange(together, {}));
      bytes = 0;
      if (progress) progress(done + static_cast<i64>(reader.stored_position()), files.total_size());
    };
    for (bool more = true; more;) {
      Rows::Row next;
      more = reader.next(next.row);
      if (!more) break;
      next.where = reader.where();
      bytes += next.row.text.size() + (next.row.text_pair ? next.row.text_pair->size() : 0) +
               next.row.features.size() * sizeof(float) + 64;
      together.rows.push_back(std::move(next));
      if (bytes >= kLabelledBytesTogether) hand_over();
    }
    hand_over();
    done += files.size(k);
    files.check_unchanged(k);
  }
  work.finish();
  writer.finish();
}

}  // namespace

std::string build_labelled_index(const LabelledSource& source, const std::string& cache_folder,
                                 const BuildProgress& progress) {
  if (source.data.too_long.value_or("") == "split")
    throw UsageError(
        "[data] data.too_long=split: a labelled text can't be split. Use truncate, skip or error");
  const double begin = seconds();
  const SourceFiles files(source.paths, cache_folder);
  const std::string path = index_path(cache_folder, key_of(source, files), "labelled");
  return find_or_build<LabelledIndex>(
      path, begin, [&] { write_labelled_index(path, source, files, progress); },
      [](const LabelledIndex& i) {
        return CachedIndex{.unit = "example", .examples = i.size(), .tokens = i.n_tokens()};
      });
}

struct LabelledIndex::State {
  IndexFile file;
  LabelledFacts facts;
  BlockTableReader<Entry> table;
  std::vector<std::string> files;
};

LabelledIndex::LabelledIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
LabelledIndex::LabelledIndex(LabelledIndex&&) noexcept = default;
LabelledIndex& LabelledIndex::operator=(LabelledIndex&&) noexcept = default;
LabelledIndex::~LabelledIndex() = default;

LabelledIndex LabelledIndex::open(const std::string& path, const std::vector<std::string>& files) {
  LabelledFacts facts{};
  IndexFile file = IndexFile::open(path, kLabelledFormat, facts);
  BlockTableReader<Entry> table(file.file(), facts.n_examples, facts.directory);
  return LabelledIndex(std::make_unique<State>(State{std::move(file), facts, std::move(table), files}));
}

i64 LabelledIndex::size() const { return static_cast<i64>(state_->facts.n_examples); }
i64 LabelledIndex::n_tokens() const { return static_cast<i64>(state_->facts.n_tokens); }
i64 LabelledIndex::longest() const { return static_cast<i64>(state_->facts.longest); }
i64 LabelledIndex::truncated() const { return static_cast<i64>(state_->facts.truncated); }
i64 LabelledIndex::n_bad() const { return state_->file.n_bad(); }
std::string LabelledIndex::first_bad() const {
  const std::string lines = state_->file.bad_lines(state_->files);
  return lines.substr(0, lines.find('\n'));
}
std::string LabelledIndex::data_hash() const { return state_->file.data_hash(); }
i64 LabelledIndex::tokens(i64 i) const { return state_->table.at(static_cast<u64>(i)).tokens; }

LabelledExample LabelledIndex::read(i64 i) const {
  const Entry entry = state_->table.at(static_cast<u64>(i));
  const std::string what = fmt::format("example {}", i);
  LabelledRecordHeader r{};
  const std::string record = state_->file.bytes(entry.offset, entry.bytes, what);
  if (record.size() < sizeof r) throw state_->file.damaged(what);
  std::memcpy(&r, record.data(), sizeof r);
  const u64 needed =
      sizeof r + u64{4} * r.ids + r.types + u64{4} * r.values + u64{4} * r.targets + r.text + r.id;
  if (needed != record.size() || r.ids != entry.tokens) throw state_->file.damaged(what);
  const char* at = record.data() + sizeof r;
  const auto take = [&](auto& to, u64 n) {
    to.resize(n);
    if (n > 0) std::memcpy(to.data(), at, n * sizeof(to[0]));
    at += n * sizeof(to[0]);
  };
  LabelledExample e;
  take(e.ids, r.ids);
  take(e.types, r.types);
  take(e.values, r.values);
  take(e.targets, r.targets);
  take(e.text, r.text);
  take(e.id, r.id);
  return e;
}

void LabelledIndex::verify() const { state_->file.verify(); }

}  // namespace redco
