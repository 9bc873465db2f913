#include "ckpt/stored_rows.h"

#include <algorithm>
#include <utility>

namespace redco::ckpt {

i64 rows_of(const ParamSpec& s, const Shape& local) {
  return s.stored.stacked > 0 ? local[0] * local[1] : local[0];
}
i64 row_elements(const ParamSpec& s, const Shape& local) {
  i64 n = 1;
  for (size_t d = s.stored.stacked > 0 ? 2 : 1; d < local.size(); ++d) n *= local[d];
  return n;
}

View rows_in(const Tensor& t, i64 r, i64 n, i64 row) {
  const i64 stored = stored_numel(t.dtype(), {row});
  return t.view().flat(r * stored, n * stored).reshaped({n, row});
}

std::vector<Place> places_of(const ParamSpec& s, const std::vector<redco::Range>& at, i64 r0, i64 r1) {
  const int own = s.stored.stacked > 0 ? 1 : 0;  // the first dim of the stored tensors
  const int rank = static_cast<int>(at.size());
  std::vector<i64> steps(rank);
  i64 n = 1;
  for (int d = rank - 1; d >= 0; --d) {
    steps[d] = n;
    n *= at[d].size();
  }
  const i64 rows = at[own].size();  // of one stored tensor
  std::vector<Place> out;
  for (i64 r = r0; r < r1;) {
    const i64 k = own ? r / rows : 0, first = own ? r % rows : r;
    i64 last = own ? std::min(rows, r1 - k * rows) : r1;
    // Single rows in turn (gate, up, gate, ...) have their own dim.
    const bool in_turn = s.stored.whole_stack && s.stored.block == 1;
    if (const i64 block = s.stored.block; block > 0 && !in_turn)  // up to the end of the block
      last = std::min(last, ((at[own].begin + first) / block + 1) * block - at[own].begin);
    Place p;
    p.tensor = s.stored.tensor(own ? at[0].begin + k : 0);
    p.elements = (last - first) * steps[own];
    for (int d = own; d < rank; ++d) {
      const i64 row = s.stored.row_of(at[own].begin + first);
      const i64 begin = in_turn ? at[own].begin + first : row;
      p.box.push_back(d == own ? Range{begin, begin + last - first} : Range{at[d].begin, at[d].end});
      p.strides.push_back(steps[d]);
    }
    if (s.stored.transposed) {
      std::swap(p.box[0], p.box[1]);
      std::swap(p.strides[0], p.strides[1]);
    }
    if (s.stored.whole_stack) {
      const i64 expert = at[0].begin + k;
      p.box.insert(p.box.begin(), Range{expert, expert + 1});
      p.strides.insert(p.strides.begin(), p.elements);
    }
    if (in_turn) {
      const int out_dim = s.stored.transposed ? 2 : 1;
      p.view = s.stored.file_shape();
      p.view[out_dim] /= s.stored.step;
      p.view.insert(p.view.begin() + out_dim + 1, s.stored.step);
      p.box.insert(p.box.begin() + out_dim + 1, Range{s.stored.row, s.stored.row + 1});
      p.strides.insert(p.strides.begin() + out_dim + 1, 1);
    }
    if (s.stored.shape.empty())
      p.box.clear(), p.strides.clear();  // a scalar, whose parameter has one element
    out.push_back(std::move(p));
    r += last - first;
  }
  return out;
}

}  // namespace redco::ckpt
