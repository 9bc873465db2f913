// Examples laid into rows of at most max_length tokens.
//
// Packing (version 1): examples in file order; each goes into the first of the open rows that has room for
// all of it, else into a new one. 64 rows are open at most: a new one closes the oldest, and so does a row
// that has no room for two tokens close itself. Rows are counted in the order in which they are closed.
// Nothing is drawn, and what a row holds depends on its neighbours in the file alone.
//
// The rows are kept in a file beside the index: any number of them costs no memory.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/example_index.h"
#include "data/lm_windows.h"

namespace redco {

struct RowSettings {
  i64 max_length = 0;
  bool packing = true;  // false: an example a row
  // Of examples that are longer: `split` makes several of one, each beginning with the last token of the one
  // before, so that every token but the first stays a target; `truncate` leaves out what is over; `skip`,
  // `error`. Empty: split for texts, truncate for others.
  std::string too_long;
};

// Tokens [begin, begin + length) of an example.
struct RowPiece {
  u64 example;
  u32 begin, length;
};

struct RowCounts {
  u64 rows = 0, pieces = 0, tokens = 0, longest = 0;
  u64 split = 0, truncated = 0, left_out = 0;  // examples, examples, tokens of these
  u64 skipped = 0;                             // examples, for their length
  u64 without_target = 0;                      // examples cut before the first token to be learnt
};

// Makes the rows' file beside the index, unless it is there and whole; -> its path. On one rank only.
// ContentsError with the line of the first example that is too long where too_long is `error`, and where no
// row is left.
std::string build_rows(const ExampleIndex& index, const RowSettings& s);

// Open rows. Const and thread-safe; movable.
class ExampleRows {
 public:
  static ExampleRows open(const std::string& path);  // ContentsError for what is no whole file of rows
  ExampleRows(ExampleRows&&) noexcept;
  ExampleRows& operator=(ExampleRows&&) noexcept;
  ~ExampleRows();

  i64 size() const { return static_cast<i64>(counts().rows); }
  const RowCounts& counts() const;
  i64 tokens(i64 row) const;  // of all its pieces
  std::vector<RowPiece> pieces(i64 row) const;
  void verify() const;

 private:
  struct State;
  explicit ExampleRows(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace redco
