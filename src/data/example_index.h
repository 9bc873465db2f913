// The examples of JSONL files, tokenized once and kept in a file that every rank reads: ids, which of them
// the loss counts, where the prompt ends, and the line that each came from.
//
// File format (little-endian): a header of 176 bytes (ExampleIndexHeader in the .cpp); records one after the
// other, with the blocks of a table of 40-byte entries (data/block_table.h) between them; the texts about bad
// lines; the table's directory. A record: u32 runs, prompt tokens, bytes of the id, bytes of the reference; a
// pair of u32 (begin, end) for each run of tokens that the loss counts; the ids, u16 where the tokenizer has
// at most 65536 of them, else i32; the id's JSON; the reference. Published whole or not at all.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/example_lines.h"
#include "data/example_records.h"
#include "data/source_files.h"

namespace redco {

// Raised whenever the same lines could give another file.
inline constexpr u32 kExampleIndexVersion = 1;

// Any kind of examples: how their files fall into records, and what a record becomes.
struct ExampleBuild {
  std::vector<std::string> paths;  // plain or gzipped
  std::string fingerprint;         // of all but the files that the examples depend on
  std::function<std::unique_ptr<ExampleRecords>()> open;
  // On several threads at once. ContentsErrors say the reason alone.
  std::function<TokenizedExample(const ExampleRecord&)> read;
  bool skip_bad = false;
  bool references = false;  // keep what predictions are compared with
};

// Makes the index under `cache_folder`, unless it is there and whole; -> its path. Memory is bounded whatever
// the files' size; a line is 64 MiB at most. Records are read on all cores that the process may use, and the
// file is the same for any number of them. Call it on one rank only. Errors: UsageError (missing file);
// ContentsError "file:line: reason" for the first bad record, unless skip_bad; ContentsError where no record
// is left, for broken gzip, and for a file that changes meanwhile; IoError.
std::string build_example_index(const ExampleBuild& build, i64 vocab_size, const std::string& cache_folder,
                                const BuildProgress& progress = {});

// JSONL as ExampleLines reads it.
struct ExampleSource {
  std::vector<std::string> paths;  // plain or gzipped
  ExampleFields fields;
  const ChatTemplate* chat = nullptr;  // null: the model has none
  bool skip_bad = false;
  bool references = false;  // keep what predictions are compared with
};

// Blank lines are none; UsageError for chats without a template.
std::string build_example_index(const ExampleSource& source, const Tokenizer& tokenizer,
                                const std::string& cache_folder, const BuildProgress& progress = {});

// What is known of an example without reading its tokens.
struct ExampleEntry {
  u64 offset;  // of its record
  u64 line;    // from 1
  u32 file;    // of the source's paths
  u32 tokens;
  u32 targets;       // that the loss counts and that have a token before them
  u32 first_target;  // the first of these, at least 1
  u32 last_target;
  u32 kind;  // an ExampleKind
};

struct StoredExample {
  std::vector<i32> ids;
  std::vector<std::uint8_t> in_loss;
  i64 prompt_tokens = 0;
  std::string id, reference;
};

// An open index. Const and thread-safe; movable.
class ExampleIndex {
 public:
  // ContentsError for a file that is no example index of this version.
  static ExampleIndex open(const std::string& path);
  ExampleIndex(ExampleIndex&&) noexcept;
  ExampleIndex& operator=(ExampleIndex&&) noexcept;
  ~ExampleIndex();

  i64 size() const;  // examples
  i64 n_tokens() const;
  i64 n_targets() const;
  i64 text_bytes() const;  // of the lines
  i64 longest() const;     // tokens
  i32 max_id() const;
  i64 n_cut() const;  // examples of which something was left out for its length
  i64 n_bad() const;  // lines passed over
  // The first of them: "file:line: reason", a line each.
  std::string bad_lines() const;
  // Of all of them, for people: how many, and the first; "" where there is none.
  std::string describe_bad() const;
  const std::string& path() const;
  // Hash of the lines and of all that their tokens depend on, 32 hex digits: what a resumed job compares.
  std::string data_hash() const;

  ExampleEntry entry(i64 i) const;
  void entries(i64 begin, std::span<ExampleEntry> out) const;
  // "file:line"; the files' names are those of the build.
  std::string where(const ExampleEntry& e) const;

  // ContentsError where the file no longer holds what it should.
  StoredExample read(const ExampleEntry& e) const;

  // Reads all of it and compares with the hash in the header; ContentsError if they differ.
  void verify() const;
  // ContentsError where an id is not below `rows`, the rows of the model's embedding.
  void check_vocab(i64 rows) const;

 private:
  struct State;
  explicit ExampleIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace redco
