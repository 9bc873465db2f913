// Examples packed into rows of at most max_length tokens.
//
// Packing (version 2). The examples, or the pieces of split ones, are sorted into classes of similar lengths
// within pools of 2^20: a class has one length if 32 pieces have it, else it grows by the next lengths until
// it has 32 pieces, or its lengths differ by more than 1/16. A piece needs room for the longest one of its
// class. First-fit in file order: each piece goes into the first open row with enough room, else into a new
// row. At most 64 rows are open: a new one closes the oldest. A row with room for less than two tokens is
// closed. Rows are numbered in the order in which they are closed.
//
// So the pieces of a class can be exchanged. Each epoch exchanges them in the EpochOrder of the class: rows
// combine other examples in each epoch, every example occurs once, and the number of rows is the same.
//
// The rows are stored in a file next to the index. Building them needs memory for one pool.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "data/text/example_index.h"

namespace redco {

// Raised when the same examples could give other rows.
inline constexpr u32 kRowsVersion = 2;
// Raised when the same rows could give another file.
inline constexpr u32 kRowsFileVersion = 3;

struct RowSettings {
  i64 max_length = 0;
  bool packing = true;  // false: one example per row
  // Action for longer examples: `split` makes several examples, each beginning with the last token of the
  // previous one, so that every token but the first stays a target; `truncate` drops the end; `skip`;
  // `error`. Empty: split for texts, truncate for others.
  std::string too_long;
};

// Tokens [begin, begin + length) of an example.
struct RowPiece {
  u64 example;
  u32 begin, length;
};

// Which examples a row combines.
struct PackingOrder {
  u64 seed = 0;
  i64 epoch = -1;  // -1: the order of the file
};

struct RowCounts {
  u64 rows = 0, pieces = 0, tokens = 0;
  u64 longest = 0;                             // row, in tokens, in the order of the file
  u64 split = 0, truncated = 0, left_out = 0;  // examples, examples, tokens of these
  u64 skipped = 0;                             // examples skipped for their length
  u64 without_target = 0;                      // examples truncated before their first target
};

// Builds the file of rows next to the index, unless a valid one exists, and returns its path. On one rank
// only. ContentsError with the line of the first example that is too long if too_long is `error`, and if no
// row remains.
std::string build_rows(const ExampleIndex& index, const RowSettings& s);

// An open file of rows. Const and thread-safe; movable.
class ExampleRows {
 public:
  static ExampleRows open(const std::string& path);  // ContentsError if the file is not valid
  ExampleRows(ExampleRows&&) noexcept;
  ExampleRows& operator=(ExampleRows&&) noexcept;
  ~ExampleRows();

  i64 size() const { return static_cast<i64>(counts().rows); }
  const RowCounts& counts() const;
  i64 tokens(i64 row, const PackingOrder& order = {}) const;  // of all pieces
  std::vector<RowPiece> pieces(i64 row, const PackingOrder& order = {}) const;
  void verify() const;

 private:
  struct State;
  explicit ExampleRows(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace redco
