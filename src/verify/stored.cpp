#include "verify/stored.h"

#include <numeric>

#include "ops/create.h"

namespace redco {

std::vector<StoredPiece> stored_pieces(const ParamSpec& s) {
  const StoredAs& stored = s.stored;
  const i64 size = numel(stored.shape);
  std::vector<StoredPiece> out;
  const auto add = [&](const std::string& name, i64 whole, i64 first, i64 count) -> std::vector<i64>& {
    out.push_back({name, whole, first, std::vector<i64>(count)});
    return out.back().index;
  };
  if (stored.whole_stack) {
    auto& index = add(stored.name, stored.stacked * size, 0, numel(s.shape));
    const i64 rows = s.shape[1], row = numel(s.shape) / std::max<i64>(1, s.shape[0] * rows);
    const i64 all = stored.transposed ? stored.shape[1] : 0;
    for (i64 i = 0; i < std::ssize(index); ++i) {
      const i64 k = i / (rows * row), r = stored.row_of(i / row % rows), c = i % row;
      index[i] = k * size + (stored.transposed ? c * all + r : r * row + c);
    }
  } else if (stored.stacked > 0) {
    for (i64 k = 0; k < stored.stacked; ++k) {
      auto& index = add(stored.tensor(k), size, k * size, size);
      std::iota(index.begin(), index.end(), 0);
    }
  } else {
    auto& index = add(stored.name, size, 0, numel(s.shape));
    const i64 rows = s.shape[0], row = rows ? numel(s.shape) / rows : 0;
    const i64 all = stored.transposed ? stored.shape[1] : 0;
    for (i64 r = 0; r < rows; ++r)
      for (i64 k = 0; k < row; ++k)
        index[r * row + k] = stored.transposed ? k * all + stored.row_of(r) : stored.row_of(r) * row + k;
  }
  if (stored.joined.empty()) return out;
  // Rows (of each matrix in a stack) between the rows of other parts.
  const i64 row = size / std::max<i64>(1, stored.shape[0]);
  const i64 all = stored.joined_rows > 0 ? stored.joined_rows * row : size;
  const i64 matrices = std::max<i64>(1, stored.stacked);
  const i64 each = stored.whole_stack ? numel(s.shape) / matrices : size;
  for (i64 k = 0; k < matrices; ++k) {
    auto& index = add(stored.joined, matrices * all, k * each, each);
    std::iota(index.begin(), index.end(), k * all + stored.joined_row * row);
  }
  return out;
}

std::map<std::string, std::vector<double>> by_stored_name(const ParamTree& tree) {
  std::map<std::string, std::vector<double>> out;
  for (size_t i = 0; i < tree.size(); ++i) {
    const auto values = to_values(tree.values()[i]);
    for (const StoredPiece& p : stored_pieces(tree.specs()[i])) {
      auto& whole = out[p.name];
      whole.resize(p.size);
      for (size_t j = 0; j < p.index.size(); ++j) whole[p.index[j]] = values[p.first + j];
    }
  }
  return out;
}

}  // namespace redco
