#include "data/text/example_index.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/input_file.h"
#include "base/ordered_work.h"
#include "base/process.h"
#include "base/words.h"
#include "data/index/block_table.h"
#include "data/index/cached_index.h"
#include "data/text/record_lines.h"
#include "data/text/record_map.h"

namespace redco {

namespace {

constexpr char kExampleMagic[8] = {'r', 'e', 'd', 'c', 'o', 'E', 'X', 'A'};

struct ExampleIndexHeader {
  char magic[8];
  u32 version;
  u32 token_bytes;  // 2 or 4
  u64 n_examples, n_tokens, n_targets, n_bad, text_bytes;
  u64 longest;
  i32 max_id;
  u32 unused;
  u64 key[2];            // of the file's name
  u64 data_hash[2];      // XXH3 of the lines and of the settings that their tokens depend on
  u64 notes, notes_end;  // text: the bad lines, "FILE:LINE: reason\n" with the number of the file from 0
  u64 directory;         // of the table
  u64 n_files;
  u64 n_cut;
  u64 reserved[2];
  u64 body_hash;    // XXH3 of what follows the header
  u64 header_hash;  // XXH3 of all above
};
static_assert(sizeof(ExampleIndexHeader) == 176);
static_assert(sizeof(ExampleEntry) == 40);

struct ExampleRecordHeader {
  u32 runs, prompt_tokens, id_bytes, reference_bytes;
};

constexpr i64 kBadShown = 5;

u64 hash_of(const ExampleIndexHeader& h) {
  return hash64({reinterpret_cast<const char*>(&h), offsetof(ExampleIndexHeader, header_hash)});
}

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
      : source_(source), file_(path, sizeof(ExampleIndexHeader)), table_(file_) {
    std::memcpy(header.magic, kExampleMagic, sizeof kExampleMagic);
    header.version = kExampleIndexVersion;
    header.token_bytes = vocab_size <= 65536 ? 2 : 4;
    header.max_id = -1;
  }

  void add(const std::vector<Tokenized>& records) {
    for (const Tokenized& t : records) {
      if (t.bad.empty()) {
        add(t.example, t.line, t.file);
      } else {
        bad(t);
      }
    }
  }

  void finish() {
    if (table_.size() == 0)
      throw ContentsError(
          "{}: the files have no examples{}", words_of_files(source_.paths),
          header.n_bad == 0 ? "" : fmt::format("; {} bad lines, the first: {}", header.n_bad, first_bad_));
    header.n_files = source_.paths.size();
    header.notes = file_.append(bad_);
    header.notes_end = header.notes + bad_.size();
    header.n_examples = table_.size();
    header.directory = table_.finish();
    header.body_hash = file_.body_hash();
    header.header_hash = hash_of(header);
    file_.commit(&header, sizeof header);
  }

  ExampleIndexHeader header{};

 private:
  void bad(const Tokenized& t) {
    const std::string at = fmt::format("{}:{}: {}", source_.paths[t.file], t.line, t.bad);
    if (!source_.skip_bad)
      throw ContentsError("{}{}", at, "; data.skip_bad=true skips and counts such lines");
    if (header.n_bad == 0) first_bad_ = at;
    if (static_cast<i64>(header.n_bad++) < kBadShown) {
      std::string why = t.bad;
      std::replace(why.begin(), why.end(), '\n', ' ');
      bad_ += fmt::format("{}:{}: {}\n", t.file, t.line, why);
    }
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
      header.max_id = std::max(header.max_id, id);
      const auto narrow = static_cast<std::uint16_t>(id);
      record.append(header.token_bytes == 2 ? reinterpret_cast<const char*>(&narrow)
                                            : reinterpret_cast<const char*>(&id),
                    header.token_bytes);
    }
    record += e.id;
    if (source_.references) record += e.reference;
    entry.offset = file_.append(record);
    table_.add(entry);
    header.n_tokens += entry.tokens;
    header.n_targets += entry.targets;
    header.n_cut += e.cut;
    header.longest = std::max(header.longest, u64{entry.tokens});
  }

  const ExampleBuild& source_;
  HashedFile file_;
  TableWriter<ExampleEntry> table_;
  std::string bad_, first_bad_;
};

void write_example_index(const std::string& path, const Hash128& key, const ExampleBuild& build,
                         const SourceFiles& files, i64 vocab_size, const BuildProgress& progress) {
  ExampleWriter writer(path, build, vocab_size);
  writer.header.key[0] = key.high;
  writer.header.key[1] = key.low;
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
    put(data, writer.header.text_bytes);
    files.check_unchanged(file++);
  };
  for (ExampleRecord r; records->next(r); r = {}) {
    while (file < r.file) end_file();
    auto count = [&](const std::string& text) {
      put(data, text);
      writer.header.text_bytes += text.size();
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
  const Hash128 h = data.digest128();
  writer.header.data_hash[0] = h.high;
  writer.header.data_hash[1] = h.low;
  writer.finish();
}

}  // namespace

std::string build_example_index(const ExampleBuild& build, i64 vocab_size, const std::string& cache_folder,
                                const BuildProgress& progress) {
  const double begin = seconds();
  const SourceFiles files(build.paths, cache_folder);
  const Hash128 key = key_of(build, files);
  const std::string path = index_path(cache_folder, key, "examples");
  return find_or_build<ExampleIndex>(
      path, begin, [&] { write_example_index(path, key, build, files, vocab_size, progress); },
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
  ReadFile file;
  ExampleIndexHeader header;
  BlockTableReader<ExampleEntry> table;
  std::vector<std::string> files;
  std::string bad_lines;
};

ExampleIndex::ExampleIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
ExampleIndex::ExampleIndex(ExampleIndex&&) noexcept = default;
ExampleIndex& ExampleIndex::operator=(ExampleIndex&&) noexcept = default;
ExampleIndex::~ExampleIndex() = default;

ExampleIndex ExampleIndex::open(const std::string& path, std::vector<std::string> files) {
  ReadFile file = ReadFile::open(path);
  ExampleIndexHeader h{};
  auto broken = [&](const std::string& why) -> ContentsError {
    return ContentsError("{}: not a complete example index: {}. Remove the file; redco rebuilds it", path,
                         why);
  };
  if (file.size() < static_cast<i64>(sizeof h)) throw broken(fmt::format("{} bytes", file.size()));
  file.pread_exact(0, &h, sizeof h);
  if (std::memcmp(h.magic, kExampleMagic, sizeof kExampleMagic) != 0)
    throw broken("its first bytes are wrong");
  if (h.version != kExampleIndexVersion)
    throw broken(fmt::format("it has version {}, not {}", h.version, kExampleIndexVersion));
  const u64 size = static_cast<u64>(file.size());
  if (h.header_hash != hash_of(h) || (h.token_bytes != 2 && h.token_bytes != 4) || h.notes > size ||
      h.notes_end < h.notes || h.notes_end > size || h.notes_end - h.notes > (u64{1} << 26))
    throw broken("its header is damaged");
  BlockTableReader<ExampleEntry> table(file, h.n_examples, h.directory);
  std::string notes(h.notes_end - h.notes, '\0');
  file.pread_exact(static_cast<i64>(h.notes), notes.data(), static_cast<i64>(notes.size()));
  std::string bad_lines;
  for (std::size_t at = 0, end; (end = notes.find('\n', at)) != std::string::npos; at = end + 1) {
    const std::string line = notes.substr(at, end - at);
    u64 number = 0;
    const auto r = std::from_chars(line.data(), line.data() + line.size(), number);
    if (r.ec != std::errc() || number >= h.n_files) throw broken("its list of bad lines is damaged");
    bad_lines += name_of_file(files, number) + std::string(r.ptr, line.data() + line.size()) + "\n";
  }
  auto state = std::make_unique<State>(
      State{std::move(file), h, std::move(table), std::move(files), std::move(bad_lines)});
  state->table.refer_to(state->file);
  return ExampleIndex(std::move(state));
}

i64 ExampleIndex::size() const { return static_cast<i64>(state_->header.n_examples); }
i64 ExampleIndex::n_tokens() const { return static_cast<i64>(state_->header.n_tokens); }
i64 ExampleIndex::n_targets() const { return static_cast<i64>(state_->header.n_targets); }
i64 ExampleIndex::text_bytes() const { return static_cast<i64>(state_->header.text_bytes); }
i64 ExampleIndex::longest() const { return static_cast<i64>(state_->header.longest); }
i32 ExampleIndex::max_id() const { return state_->header.max_id; }
i64 ExampleIndex::n_cut() const { return static_cast<i64>(state_->header.n_cut); }
i64 ExampleIndex::n_bad() const { return static_cast<i64>(state_->header.n_bad); }
std::string ExampleIndex::bad_lines() const { return state_->bad_lines; }
std::string ExampleIndex::describe_bad() const {
  if (n_bad() == 0) return "";
  const std::string bad = bad_lines();
  return fmt::format("{} skipped (data.skip_bad); the first:\n  {}", counted(n_bad(), "bad line"),
                     bad.substr(0, bad.find_last_not_of('\n') + 1));
}
const std::string& ExampleIndex::path() const { return state_->file.path(); }
std::string ExampleIndex::data_hash() const {
  return Hash128{state_->header.data_hash[0], state_->header.data_hash[1]}.hex();
}

ExampleEntry ExampleIndex::entry(i64 i) const { return state_->table.at(static_cast<u64>(i)); }
void ExampleIndex::entries(i64 begin, std::span<ExampleEntry> out) const {
  state_->table.read(static_cast<u64>(begin), out.size(), out.data());
}

const std::vector<std::string>& ExampleIndex::files() const { return state_->files; }

std::string ExampleIndex::where(const ExampleEntry& e) const {
  return fmt::format("{}:{}", name_of_file(state_->files, e.file), e.line);
}

StoredExample ExampleIndex::read(const ExampleEntry& e) const {
  const ReadFile& file = state_->file;
  auto broken = [&]() -> ContentsError {
    return ContentsError("{}: the record at byte {} is damaged. Remove the file; redco rebuilds it", path(),
                         e.offset);
  };
  const u64 size = static_cast<u64>(file.size()), width = state_->header.token_bytes;
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

void ExampleIndex::verify() const {
  if (!body_has_hash(state_->file, sizeof(ExampleIndexHeader), state_->header.body_hash))
    throw ContentsError(
        "{}: the contents differ from the hash in the header. Remove the file; redco rebuilds it", path());
}

void ExampleIndex::check_vocab(i64 rows) const {
  if (max_id() >= rows)
    throw ContentsError(
        "{}: the data have token id {}, but the model's embedding has {} rows. The tokenizer does not fit "
        "the model; set model.tokenizer to the model's tokenizer",
        path(), max_id(), rows);
}

}  // namespace redco
