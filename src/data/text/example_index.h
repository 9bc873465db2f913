// The examples of JSONL files, tokenized once and stored in a file that every rank reads: ids, the tokens
// that the loss counts, the end of the prompt, and the source line.
//
// File (data/index/index_file.h): records, with the blocks of a table of 40-byte entries between them; the
// table's directory. A record: u32 runs, prompt tokens, bytes of the id, bytes of the reference; a pair of
// u32 (begin, end) for each run of tokens that the loss counts; the ids, u16 if the tokenizer has at most
// 65536 of them, else i32; the id's JSON; the reference.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/index/source_files.h"
#include "data/text/example_lines.h"
#include "data/text/example_records.h"

namespace redco {

// Raised when the same lines could give another file.
inline constexpr u32 kExampleIndexVersion = 5;
// Raised when the same lines could give other examples: data_hash() changes, so runs can't resume.
inline constexpr u32 kExampleDataVersion = 1;

// Examples of any kind: how files are split into records, and how a record is tokenized.
struct ExampleBuild {
  std::vector<std::string> paths;  // plain or compressed
  std::string fingerprint;         // of everything that the examples depend on, except the files
  std::function<std::unique_ptr<ExampleRecords>()> open;
  // Called by several threads. An example without ids is left out and counted. ContentsErrors are the reason,
  // without the place.
  std::function<TokenizedExample(const ExampleRecord&)> read;
  bool skip_bad = false;
  bool references = false;  // stores the reference texts, which predictions are compared with
};

// Builds the index in `cache_folder`, unless a valid one exists, and returns its path. Copies of the files
// have the same index. Memory is bounded for files of any size; a line has at most 64 MiB. All cores of the
// process read records; the file does not depend on their number. Call it on one rank only. Errors:
// UsageError (a missing file, a cache folder without the index that can't be written); ContentsError
// "file:line: reason" for the first bad record, unless skip_bad; ContentsError if no record remains, for
// damaged compressed data, and for a file that changes during the build; IoError.
std::string build_example_index(const ExampleBuild& build, i64 vocab_size, const std::string& cache_folder,
                                const BuildProgress& progress = {});

// Records of any format, read by ExampleLines.
struct ExampleSource {
  std::vector<std::string> paths;  // plain or compressed
  ExampleFields fields;
  const ChatTemplate* chat = nullptr;  // null: the model has none
  bool skip_bad = false;
  bool references = false;             // stores the reference texts, which predictions are compared with
  const DataSettings* data = nullptr;  // format and header; null: JSONL
};

// Blank lines are skipped. UsageError for chats without a template.
std::string build_example_index(const ExampleSource& source, const Tokenizer& tokenizer,
                                const std::string& cache_folder, const BuildProgress& progress = {});

// The facts about an example that are known without its tokens.
struct ExampleEntry {
  u64 offset;  // of its record
  u64 line;    // from 1
  u32 file;    // of the source's paths
  u32 tokens;
  u32 targets;       // tokens that the loss counts and that have a token before them
  u32 first_target;  // index of the first target, at least 1
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
  // files: the data files of this run, for messages. ContentsError if the file is not an example index of
  // this version.
  static ExampleIndex open(const std::string& path, std::vector<std::string> files = {});
  ExampleIndex(ExampleIndex&&) noexcept;
  ExampleIndex& operator=(ExampleIndex&&) noexcept;
  ~ExampleIndex();

  i64 size() const;  // examples
  i64 n_tokens() const;
  i64 n_targets() const;
  i64 text_bytes() const;  // of the lines
  i64 longest() const;     // tokens
  i32 max_id() const;
  i64 n_cut() const;    // truncated examples
  i64 n_empty() const;  // records without a text, which are left out
  i64 n_bad() const;    // skipped lines
  // The first bad lines, "file:line: reason", one per line.
  std::string bad_lines() const;
  // Summary for the log: the number of bad lines, and the first ones; "" if there are none.
  std::string describe_bad() const;
  const std::string& path() const;
  // Hash of the lines and of everything that their tokens depend on, 32 hex digits; compared on resume.
  std::string data_hash() const;

  ExampleEntry entry(i64 i) const;
  void entries(i64 begin, std::span<ExampleEntry> out) const;
  const std::vector<std::string>& files() const;  // as given to open()
  // "file:line".
  std::string where(const ExampleEntry& e) const;

  // ContentsError if the file's content is damaged.
  StoredExample read(const ExampleEntry& e) const;

  // Reads the whole file and compares its hash with the header; ContentsError if they differ.
  void verify() const;
  // ContentsError if an id is not below `rows`, the rows of the model's embedding.
  void check_vocab(i64 rows) const;

 private:
  struct State;
  explicit ExampleIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace redco
