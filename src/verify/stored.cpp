#include "verify/stored.h"

#include <numeric>

#include "ckpt/stored_rows.h"
#include "ops/create.h"

namespace redco {

std::vector<StoredPiece> stored_pieces(const ParamSpec& s) {
  const StoredAs& stored = s.stored;
  const bool one = ckpt::in_one_tensor(stored);
  const i64 size = one ? numel(s.shape) / stored.stacked : numel(stored.shape);  // of a matrix in a stack
  std::vector<StoredPiece> out;
  const auto add = [&](const std::string& name, i64 whole, i64 first, i64 count) -> std::vector<i64>& {
    out.push_back({name, whole, first, std::vector<i64>(count)});
    return out.back().index;
  };
  if (one) {
    const i64 whole = numel(stored.shape), all = whole / stored.stacked, row = s.shape[2];
    for (i64 k = 0; k < stored.stacked; ++k) {
      auto& index = add(stored.name, whole, k * size, size);
      std::iota(index.begin(), index.end(), k * all + stored.row * row);
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
  const i64 row = one ? s.shape[2] : size / std::max<i64>(1, stored.shape[0]);
  const i64 all = stored.joined_rows > 0 ? stored.joined_rows * row : size;
  for (i64 k = 0; k < stored.tensors(); ++k) {
    auto& index = add(stored.joined, stored.tensors() * all, k * size, size);
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
