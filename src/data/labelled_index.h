// Labelled texts and vectors, read (and tokenized) once and kept in a file that every rank reads.
//
// File format (little-endian): a header of 120 bytes (LabelledHeader in the .cpp); records one after the
// other, with the blocks of a table of 32-byte entries (data/block_table.h) between them; the texts about the
// files; the table's directory. A record: u32 ids, token types, values, targets, bytes of the text and of
// the id; then these: i32, u8, f32, f32, bytes, bytes. Published whole or not at all.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/labelled_rows.h"
#include "data/source_files.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// Raised whenever the same rows could give another file.
inline constexpr u32 kLabelledIndexVersion = 1;

struct LabelledSource {
  std::vector<std::string> paths;  // plain or gzipped
  DataSettings data;               // format, fields, header, too_long, skip_bad
  LabelledInput input = LabelledInput::text;
  const Tokenizer* tokenizer = nullptr;  // of texts
  i64 max_length = 0;                    // tokens of a text or a pair, special ones included
  i64 n_features = 0;                    // numbers of a vector
  std::optional<ClassNames> classes;     // labels are names of these; none: they are numbers,
  i64 n_targets = 1;                     // so many
};

struct LabelledExample {
  std::vector<i32> ids;             // of a text, or of both of a pair
  std::vector<std::uint8_t> types;  // as many: which of the two each belongs to
  std::vector<float> values;        // of a vector
  std::vector<float> targets;       // the class's number, or the values to be told
  std::string text;                 // what it was made of, a JSON object: {"text", "text_pair"}, {"features"}
  std::string id;                   // as JSON; "" is none
  bool truncated = false;
};
// A row's input as an example without targets: texts are tokenized, and longer ones than max_length lose
// tokens from their ends, the longer of a pair first. ContentsErrors are the reason alone; UsageError where
// max_length has no room for a token.
LabelledExample labelled_input(const LabelledRow& row, const LabelledSource& s);

// Makes the index under `cache_folder`, unless it is there and whole; -> its path. Rows are tokenized on all
// cores that the process may use. Call it on one rank only. Errors: UsageError (a missing file or column);
// ContentsError "file:line: reason" for the first bad row (a label outside the classes is one), unless
// data.skip_bad; ContentsError where no row is left; IoError.
std::string build_labelled_index(const LabelledSource& source, const std::string& cache_folder,
                                 const BuildProgress& progress = {});

// An open index. Const and thread-safe; movable.
class LabelledIndex {
 public:
  // ContentsError for a file that is no labelled index of this version.
  static LabelledIndex open(const std::string& path);
  LabelledIndex(LabelledIndex&&) noexcept;
  LabelledIndex& operator=(LabelledIndex&&) noexcept;
  ~LabelledIndex();

  i64 size() const;
  i64 tokens(i64 i) const;  // of one example
  i64 n_tokens() const;
  i64 longest() const;
  i64 truncated() const;
  i64 n_bad() const;
  std::string first_bad() const;  // "file:line: reason"; "" is none
  std::string data_hash() const;  // what a resumed job compares
  // ContentsError where the file no longer holds what it should.
  LabelledExample read(i64 i) const;
  void verify() const;  // ContentsError unless all of it hashes as its header says

 private:
  struct State;
  explicit LabelledIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace redco
