// Labelled texts and vectors, read (and tokenized) once and stored in a file that every rank reads.
//
// File format (little-endian): a header of 120 bytes (LabelledHeader in the .cpp); records, with the blocks
// of a table of 32-byte entries (data/index/block_table.h) between them; the texts about the files; the
// table's directory. A record: u32 ids, token types, values, targets, bytes of the text and of the id; then
// these: i32, u8, f32, f32, bytes, bytes. The file is complete or absent.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/index/source_files.h"
#include "data/labelled/labelled_rows.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// Raised when the same rows could give another file.
inline constexpr u32 kLabelledIndexVersion = 3;

struct LabelledSource {
  std::vector<std::string> paths;  // plain or compressed
  DataSettings data;               // format, fields, header, too_long, skip_bad
  LabelledInput input = LabelledInput::text;
  const Tokenizer* tokenizer = nullptr;  // for texts
  i64 max_length = 0;                    // maximum tokens of a text or a pair, special tokens included
  i64 n_features = 0;                    // size of a vector
  std::optional<ClassNames> classes;     // labels are class names; nullopt: labels are numbers,
  i64 n_targets = 1;                     // this many
  bool several = false;  // with classes: any number of them in an example; targets are 0 or 1 for each class
};

struct LabelledExample {
  std::vector<i32> ids;             // of a text, or of both texts of a pair
  std::vector<std::uint8_t> types;  // one per id: 0 for the first text, 1 for the second
  std::vector<float> values;        // of a vector
  std::vector<float> targets;       // the class index, or the target values
  std::string text;                 // the input as a JSON object: {"text", "text_pair"}, {"features"}
  std::string id;                   // as JSON; "": none
  bool truncated = false;
};
// A row's input as an example without targets. Texts are tokenized; texts longer than max_length lose tokens
// from the end, in a pair the longer one first. ContentsErrors are the reason, without the place. UsageError
// if max_length has no room for a token.
LabelledExample labelled_input(const LabelledRow& row, const LabelledSource& s);

// Builds the index in `cache_folder`, unless a valid one exists, and returns its path. Copies of the files
// have the same index. All cores of the process tokenize rows. Call it on one rank only. Errors: UsageError
// (a missing file or column); ContentsError "file:line: reason" for the first bad row (an unknown label is
// one), unless data.skip_bad; ContentsError if no row remains; IoError.
std::string build_labelled_index(const LabelledSource& source, const std::string& cache_folder,
                                 const BuildProgress& progress = {});

// An open index. Const and thread-safe; movable.
class LabelledIndex {
 public:
  // files: the data files of this run, for messages. ContentsError if the file is not a labelled index of
  // this version.
  static LabelledIndex open(const std::string& path, const std::vector<std::string>& files = {});
  LabelledIndex(LabelledIndex&&) noexcept;
  LabelledIndex& operator=(LabelledIndex&&) noexcept;
  ~LabelledIndex();

  i64 size() const;
  i64 tokens(i64 i) const;  // of one example
  i64 n_tokens() const;
  i64 longest() const;
  i64 truncated() const;
  i64 n_bad() const;
  std::string first_bad() const;  // "file:line: reason"; "": none
  std::string data_hash() const;  // compared on resume
  // ContentsError if the file's content is damaged.
  LabelledExample read(i64 i) const;
  void verify() const;  // ContentsError if the file's hash differs from the header

 private:
  struct State;
  explicit LabelledIndex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace redco
