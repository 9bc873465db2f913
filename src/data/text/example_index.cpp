#include "data/text/example_index.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/input_file.h"
#include "base/ordered_work.h"
#include "base/process.h"
#include "base/words.h"
#include "data/index/cached_index.h"
#include "data/index/index_file.h"
#include "data/text/record_lines.h"
#include "data/text/record_map.h"

namespace redco {

namespace {

constexpr IndexFormat kExampleFormat = {
    {'r', 'e', 'd', 'c', 'o', 'E', 'X', 'A'}, kExampleIndexVersion, "example index"};

struct ExampleFacts {
  u64 n_examples, n_tokens, n_targets, n_cut, n_empty, text_bytes;
  u64 longest;
  u64 directory;  // of the table
  i32 max_id;
  u32 token_bytes;  // 2 or 4
};
static_assert(sizeof(ExampleEntry) == 40);

struct ExampleRecordHeader {
  u32 runs, prompt_tokens, id_bytes, reference_bytes;
};

// Settings that the tokens depend on, besides the lines.
void put_settings(Hasher& h, const ExampleBuild& b) {
  put(h, kExampleDataVersion);
  put(h, b.fingerprint);
  put(h, b.skip_bad);
}

Hash128 key_of(const ExampleBuild& b, const SourceFiles& files) {
  Hasher h;
  put(h, kExampleIndexVersion);
  put_settings(h, b);
  put(h, b.references);
  files.put_into(h);
  return h.digest128();
}

// Records to tokenize.
using Records = std::vector<ExampleRecord>;
struct Tokenized {
  u64 line;
  u32 file;
  TokenizedExample example;
  std::string bad;  // why it is bad; "" if it isn't
};
constexpr std::size_t kExampleBytesTogether = std::size_t{256} << 10;  // bytes

std::vector<Tokenized> tokenize(const ExampleBuild& b, const Records& records) {
  std::vector<Tokenized> out;
  for (const ExampleRecord& r : records) {
    Tokenized& t = out.emplace_back(Tokenized{r.line, r.file, {}, r.bad});
    if (!t.bad.empty()) continue;
    try {
      t.example = b.read(r);
    } catch (const ContentsError& e) {
      t.bad = e.what();
    }
  }
  return out;
}

class ExampleWriter {
 public:
  ExampleWriter(const std::string& path, const ExampleBuild& source, i64 vocab_size)
      : source_(source), index_(path, kExampleFormat, sizeof(ExampleFacts)), table_(index_.file()) {
    facts.token_bytes = vocab_size <= 65536 ? 2 : 4;
    facts.max_id = -1;
  }

  void add(const std::vector<Tokenized>& records) {
    for (const Tokenized& t : records) {
      if (!t.bad.empty())
        bad(t);
      else if (t.example.ids.empty())
        ++facts.n_empty;
      else
        add(t.example, t.line, t.file);
    }
  }

  void finish(const Hash128& data_hash) {
    if (table_.size() == 0)
      throw ContentsError(
          "{}: the files have no examples{}{}", words_of_files(source_.paths),
          facts.n_empty > 0 ? fmt::format("; {} without a text", counted(facts.n_empty, "record")) : "",
          index_.describe_bad(source_.paths));
    facts.n_examples = table_.size();
    facts.directory = table_.finish();
    index_.finish(data_hash, facts);
  }

  ExampleFacts facts{};

 private:
  void bad(const Tokenized& t) {
    if (!source_.skip_bad)
      throw ContentsError("{}:{}: {}; data.skip_bad=true skips and counts such lines", source_.paths[t.file],
                          t.line, t.bad);
    index_.add_bad(t.file, fmt::format("{}: {}", t.line, t.bad));
  }

  void add(const TokenizedExample& e, u64 line, u32 file) {
    ExampleEntry entry{};
    entry.line = line;
    entry.file = file;
    entry.tokens = static_cast<u32>(e.ids.size());
    entry.kind = static_cast<u32>(e.kind);
    std::vector<u32> runs;  // begin, end, begin, end, ...
    for (std::size_t k = 0; k < e.in_loss.size(); ++k) {
      if ((e.in_loss[k] != 0) != (runs.size() % 2 != 0)) runs.push_back(static_cast<u32>(k));
      if (!e.in_loss[k] || k == 0) continue;
      if (entry.targets++ == 0) entry.first_target = static_cast<u32>(k);
      entry.last_target = static_cast<u32>(k);
    }
    if (runs.size() % 2 != 0) runs.push_back(entry.tokens);
    const ExampleRecordHeader r{static_cast<u32>(runs.size() / 2), static_cast<u32>(e.prompt_tokens),
                                static_cast<u32>(e.id.size()),
                                source_.references ? static_cast<u32>(e.reference.size()) : 0};
    std::string record(reinterpret_cast<const char*>(&r), sizeof r);
    record.append(reinterpret_cast<const char*>(runs.data()), runs.size() * sizeof(u32));
    for (const i32 id : e.ids) {
      facts.max_id = std::max(facts.max_id, id);
      const auto narrow = static_cast<std::uint16_t>(id);
      record.append(facts.token_bytes == 2 ? reinterpret_cast<const char*>(&narrow)
                                           : reinterpret_cast<const char*>(&id),
                    facts.token_bytes);
    }
    record += e.id;
    if (source_.references) record += e.reference;
    entry.offset = index_.file().append(record);
    table_.add(entry);
    facts.n_tokens += entry.tokens;
    facts.n_targets += entry.targets;
    facts.n_cut += e.cut;
    facts.longest = std::max(facts.longest, u64{entry.tokens});
  }

  const ExampleBuild& source_;
  IndexWriter index_;
  TableWriter<ExampleEntry> table_;
};

void write_example_index(const std::string& path, const ExampleBuild& build, const SourceFiles& files,
                         i64 vocab_size, const BuildProgress& progress) {
  ExampleWriter writer(path, build, vocab_size);
  OrderedWork<Records, std::vector<Tokenized>> work(
      usable_cpus(), [&](Records records, int) { return tokenize(build, records); },
      [&](std::vector<Tokenized> t) { writer.add(t); });
  Hasher data;
  put_settings(data, build);
  const std::unique_ptr<ExampleRecords> records = build.open();
  Records together;
  std::size_t bytes = 0;
  auto hand_over = [&] {
    work.add(std::exchange(together, {}));
    bytes = 0;
    if (progress) progress(static_cast<i64>(records->stored_position()), files.total_size());
  };
  std::size_t file = 0;
  auto end_file = [&] {
    put(data, writer.facts.text_bytes);
    files.check_unchanged(file++);
  };
  for (ExampleRecord r; records->next(r); r = {}) {
    while (file < r.file) end_file();
    auto count = [&](const std::string& text) {
      put(data, text);
      writer.facts.text_bytes += text.size();
      bytes += text.size();
    };
    count(r.text);
    if (r.target) count(*r.target);
    if (r.blank) continue;
    together.push_back(std::move(r));
    if (bytes >= kExampleBytesTogether) hand_over();
  }
  while (file < build.paths.size()) end_file();
  hand_over();
  work.finish();
  writer.finish(data.digest128());
}

}  // namespace

std::string build_example_index(const ExampleBuild& build, i64 vocab_size, const std::string& cache_folder,
                                const BuildProgress& progress) {
  const double begin = seconds();
  const SourceFiles files(build.paths, cache_folder);
  const Hash128 key = key_of(build, files);
  const std::string path = index_path(cache_folder, key, "examples");
  return find_or_build<ExampleIndex>(
      path, begin, [&] { write_example_index(path, build, files, vocab_size, progress); },
      [](const ExampleIndex& i) {
        return CachedIndex{.unit = "example", .examples = i.size(), .tokens = i.n_tokens()};
      });
}

std::string build_example_index(const ExampleSource& source, const Tokenizer& tokenizer,
                                const std::string& cache_folder, const BuildProgress& progress) {
  const ExampleLines lines(tokenizer, source.chat, source.fields);
  const std::string map = source.data ? RecordMap(*source.data, true).fingerprint() : "";
  const auto is_lines = [&](const std::string& path) {
    return !source.data || (map.empty() && source.data->format_of({path}) == "jsonl");
  };
  const bool all_lines = std::all_of(source.paths.begin(), source.paths.end(), is_lines);
  std::string fingerprint = lines.fingerprint();
  if (!all_lines)
    fingerprint += fmt::format(" {} {}", source.data->format.value_or("by name"),
                               source.data->header ? *source.data->header ? "header" : "no header" : "") +
                   map;
  return build_example_index({.paths = source.paths,
                              .fingerprint = fingerprint,
                              .open = [&]() -> std::unique_ptr<ExampleRecords> {
                                if (all_lines) return std::make_unique<LineRecords>(source.paths);
                                return std::make_unique<FileRecords>(source.paths, *source.data);
                              },
                              .read = [&](const ExampleRecord& r) { return lines.read(r.text); },
                              .skip_bad = source.skip_bad,
                              .references = source.references},
                             tokenizer.vocab_size(), cache_folder, progress);
}

struct ExampleIndex::State {
  IndexFile file;
  ExampleFacts facts;
  BlockTableReader<ExampleEntry> table;
  std::vector<std::string> files;
};

ExampleIndex::ExampleIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExampleIndex::ExampleIndex(ExampleIndex&&) noexcept = default;
ExampleIndex& ExampleIndex::operator=(ExampleIndex&&) noexcept = default;
ExampleIndex::~ExampleIndex() = default;

ExampleIndex ExampleIndex::open(const std::string& path, std::vector<std::string> files) {
  ExampleFacts facts{};
  IndexFile file = IndexFile::open(path, kExampleFormat, facts);
  if (facts.token_bytes != 2 && facts.token_bytes != 4) throw file.damaged("its header");
  BlockTableReader<ExampleEntry> table(file.file(), facts.n_examples, facts.directory);
  return ExampleIndex(
      std::make_unique<State>(State{std::move(file), facts, std::move(table), std::move(files)}));
}

i64 ExampleIndex::size() const { return static_cast<i64>(state_->facts.n_examples); }
i64 ExampleIndex::n_tokens() const { return static_cast<i64>(state_->facts.n_tokens); }
i64 ExampleIndex::n_targets() const { return static_cast<i64>(state_->facts.n_targets); }
i64 ExampleIndex::text_bytes() const { return static_cast<i64>(state_->facts.text_bytes); }
i64 ExampleIndex::longest() const { return static_cast<i64>(state_->facts.longest); }
i32 ExampleIndex::max_id() const { return state_->facts.max_id; }
i64 ExampleIndex::n_cut() const { return static_cast<i64>(state_->facts.n_cut); }
i64 ExampleIndex::n_empty() const { return static_cast<i64>(state_->facts.n_empty); }
i64 ExampleIndex::n_bad() const { return state_->file.n_bad(); }
std::string ExampleIndex::bad_lines() const { return state_->file.bad_lines(state_->files); }
std::string ExampleIndex::describe_bad() const { return state_->file.describe_bad(state_->files); }
const std::string& ExampleIndex::path() const { return state_->file.path(); }
std::string ExampleIndex::data_hash() const { return state_->file.data_hash(); }

ExampleEntry ExampleIndex::entry(i64 i) const { return state_->table.at(static_cast<u64>(i)); }
void ExampleIndex::entries(i64 begin, std::span<ExampleEntry> out) const {
  state_->table.read(static_cast<u64>(begin), out.size(), out.data());
}

const std::vector<std::string>& ExampleIndex::files() const { return state_->files; }

std::string ExampleIndex::where(const ExampleEntry& e) const {
  return fmt::format("{}:{}", name_of_file(state_->files, e.file), e.line);
}

StoredExample ExampleIndex::read(const ExampleEntry& e) const {
  const ReadFile& file = state_->file.file();
  const auto broken = [&] { return state_->file.damaged(fmt::format("the record at byte {}", e.offset)); };
  const u64 size = static_cast<u64>(file.size()), width = state_->facts.token_bytes;
  ExampleRecordHeader r;
  if (e.offset > size || sizeof r > size - e.offset) throw broken();
  file.pread_exact(static_cast<i64>(e.offset), &r, sizeof r);
  const u64 runs_bytes = u64{r.runs} * 2 * sizeof(u32), ids_bytes = u64{e.tokens} * width;
  const u64 bytes = runs_bytes + ids_bytes + r.id_bytes + r.reference_bytes;  // below 2^37: no overflow
  if (bytes > size - e.offset - sizeof r || r.prompt_tokens > e.tokens) throw broken();
  std::string body(bytes, '\0');
  file.pread_exact(static_cast<i64>(e.offset + sizeof r), body.data(), static_cast<i64>(bytes));
  StoredExample out;
  out.prompt_tokens = r.prompt_tokens;
  out.in_loss.resize(e.tokens);
  for (u32 k = 0; k < r.runs; ++k) {
    u32 run[2];
    std::memcpy(run, body.data() + k * sizeof run, sizeof run);
    if (run[0] > run[1] || run[1] > e.tokens) throw broken();
    std::fill(out.in_loss.begin() + run[0], out.in_loss.begin() + run[1], std::uint8_t{1});
  }
  out.ids.resize(e.tokens);
  const char* p = body.data() + runs_bytes;
  for (i32& id : out.ids) {
    if (width == 2) {
      std::uint16_t v;
      std::memcpy(&v, p, 2);
      id = v;
    } else {
      std::memcpy(&id, p, 4);
    }
    if (id < 0 || id > max_id()) throw broken();
    p += width;
  }
  out.id.assign(p, r.id_bytes);
  out.reference.assign(p + r.id_bytes, r.reference_bytes);
  return out;
}

void ExampleIndex::verify() const { state_->file.verify(); }

void ExampleIndex::check_vocab(i64 rows) const {
  if (max_id() >= rows)
    throw ContentsError(
        "{}: the data have token id {}, but the model's embedding has {} rows. The tokenizer does not fit "
        "the model; set model.tokenizer to the model's tokenizer",
        path(), max_id(), rows);
}

}  // namespace redco
