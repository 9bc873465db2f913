// Reductions. The split into pieces depends only on the shape; partial sums (fp64) are added in the order of
// pieces.
#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/error.h"
#include "kernels/cpu/device.h"
#include "kernels/cpu/elementwise.h"
#include "kernels/cpu/isa/ranges.h"
#include "kernels/cpu/list_blocks.h"
#include "kernels/cpu/lists.h"
#include "kernels/cpu/mixed.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/views.h"
#include "kernels/isa.h"
#include "kernels/square_sum.h"

namespace redco::kernels {
namespace {

struct Dim {
  i64 size, stride;
};

// in[shape] as kept[..] x reduced[..], with the last dim treated separately: rows of `cols` contiguous
// elements. Each output cell (or row of cells, if the last dim is kept) reduces `rows` of them.
struct Plan {
  SmallVector<Dim, 6> kept, reduced;  // without the last dim, outermost first
  i64 cells = 1, rows = 1, cols = 1;
  bool last_kept = true;
  i64 elements = 1;
};

Plan plan_of(std::span<const i64> shape, std::span<const bool> reduce) {
  REDCO_CHECK(shape.size() == reduce.size(), "{} dims, {} flags", shape.size(), reduce.size());
  struct Merged {
    i64 size;
    bool reduce;
  };
  SmallVector<Merged, 8> dims;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1) continue;
    if (!dims.empty() && dims.back().reduce == reduce[d])
      dims.back().size *= shape[d];
    else
      dims.push_back({shape[d], reduce[d]});
  }
  Plan p;
  if (dims.empty()) return p;
  p.cols = dims.back().size;
  p.last_kept = !dims.back().reduce;
  i64 stride = p.cols;
  for (std::size_t d = dims.size() - 1; d-- > 0;) {
    auto& list = dims[d].reduce ? p.reduced : p.kept;
    list.insert(list.begin(), {dims[d].size, stride});
    (dims[d].reduce ? p.rows : p.cells) *= dims[d].size;
    stride *= dims[d].size;
  }
  p.elements = p.cells * p.rows * p.cols;
  return p;
}

i64 offset_of(const SmallVector<Dim, 6>& dims, i64 index) {
  i64 offset = 0;
  for (std::size_t d = dims.size(); d-- > 0;) {
    offset += index % dims[d].size * dims[d].stride;
    index /= dims[d].size;
  }
  return offset;
}

// Calls f(pointer, count, stride) for the runs of equal stride in rows [begin, end).
template <class T, class F>
void runs(const Plan& p, const T* base, i64 begin, i64 end, const F& f) {
  const i64 inner = p.reduced.empty() ? 1 : p.reduced.back().size;
  const i64 stride = p.reduced.empty() ? 0 : p.reduced.back().stride;
  for (i64 r = begin; r < end;) {
    const i64 count = std::min(end - r, inner - r % inner);
    f(base + offset_of(p.reduced, r), count, stride);
    r += count;
  }
}

// The split of a plan into pieces: columns of a piece, pieces across a row, rows of a piece, pieces per cell,
// and the accumulators of all pieces.
struct Cut {
  i64 width, part, across, group, down, accumulators;
};

Cut cut_of(const Plan& p) {
  Cut c{};
  c.width = p.last_kept ? p.cols : 1;
  if (p.elements == 0) return c;
  c.part = std::min<i64>(p.cols, p.last_kept ? 2048 : kBlock);
  c.across = ceil_div(p.cols, c.part);
  c.group = std::min(p.rows, std::max<i64>({1, 4 * kBlock / c.part, ceil_div(p.rows, 64)}));
  c.down = ceil_div(p.rows, c.group);
  c.accumulators = p.cells * c.down * (p.last_kept ? c.width : c.across);
  return c;
}

}  // namespace

i64 reduce_workspace(std::span<const i64> shape, std::span<const bool> flags) {
  return cut_of(plan_of(shape, flags)).accumulators;
}

template <class X, class T>
void reduce_sum(const X* in, std::span<const i64> shape, std::span<const bool> flags, T* out,
                double* workspace) {
  const Plan p = plan_of(shape, flags);
  const auto [width, part, across, group, down, accumulators] = cut_of(p);
  if (p.cells * width == 0) return;
  if (p.elements == 0) return std::fill(out, out + p.cells * width, T(0));
  // One run for each cell, and the runs follow one another.
  if (!p.last_kept && p.rows == 1 && across == 1 && p.kept.size() <= 1)
    return for_rows(p.cells, p.cols, [&](i64 begin, i64 end) {
      REDCO_ISA_CALL(row_sums(in + begin * p.cols, end - begin, p.cols, out + begin));
    });
  for_each(p.cells * down * across, p.elements, [&](i64 t) {
    const i64 cell = t / (down * across), d = t / across % down, c = t % across * part;
    const i64 cols = std::min(part, p.cols - c);
    const X* base = in + offset_of(p.kept, cell) + c;
    const i64 first = d * group, last = std::min(p.rows, first + group);
    if (p.last_kept) {
      double* sums = workspace + (cell * down + d) * width + c;
      std::fill(sums, sums + cols, 0.0);
      runs(p, base, first, last,
           [&](const X* x, i64 n, i64 stride) { REDCO_ISA_CALL(add_rows(x, stride, n, cols, sums)); });
    } else {
      double sum = 0;
      runs(p, base, first, last, [&](const X* x, i64 n, i64 stride) {
        for (i64 r = 0; r < n; ++r) sum += REDCO_ISA_CALL(sum(x + r * stride, cols));
      });
      workspace[t] = sum;
    }
  });
  const i64 pieces = p.last_kept ? down : down * across;
  for_each(p.cells, p.cells * pieces * width, [&](i64 cell) {
    const double* from = workspace + cell * pieces * width;
    for (i64 c = 0; c < width; ++c) {
      double sum = 0;
      for (i64 i = 0; i < pieces; ++i) sum += from[i * width + c];
      out[cell * width + c] = static_cast<T>(sum);
    }
  });
}

namespace {

// Of a block: its highest bin (-1: an element is not finite), and its integers in this bin and the two below.
struct BlockSquares {
  double top, parts[3];
  bool finite() const { return top >= 0; }
};
constexpr i64 kBlockWords = sizeof(BlockSquares) / sizeof(double);

// The highest bin is that of the largest square: at most 2^39 units, so that any higher bin rounds it to 0.
BlockSquares squares_of(const float* x, i64 n) {
  BlockSquares out{-1, {}};
  const double largest = REDCO_ISA_CALL(largest_magnitude(x, n)), most = largest * largest;
  if (!std::isfinite(most)) return out;
  int top = 2;
  static_assert(SquareSum::kWidth == 40);
  while (most > SquareSum::unit(top) * 0x1p39) ++top;
  REDCO_ISA_CALL(split_squares(x, n, 1.5 * SquareSum::unit(top) * 0x1p52, out.parts));
  out.top = top;
  for (int i = 0; i < 3; ++i) out.parts[i] /= SquareSum::unit(top - i);
  return out;
}

// The sum of two parts of a block.
BlockSquares joined(const BlockSquares& a, const BlockSquares& b) {
  if (!a.finite()) return a;
  if (!b.finite()) return b;
  if (a.top < b.top) return joined(b, a);
  BlockSquares out = a;
  const int below = static_cast<int>(a.top - b.top);
  for (int i = below; i < 3; ++i) out.parts[i] += b.parts[i - below];
  return out;
}

}  // namespace

i64 sum_squares_workspace(i64 n) { return ceil_div(n, kBlock) * kBlockWords; }

void sum_squares(const Views& x, double* words, double* workspace) {
  auto* const blocks = reinterpret_cast<BlockSquares*>(workspace);
  const i64 n = ceil_div(total_numel(x), kBlock);
  std::fill_n(blocks, n, BlockSquares{2, {}});
  for_list_blocks(x, [&](i64 block, std::size_t k, i64 i, i64 end) {
    blocks[block] = joined(blocks[block], squares_of(pointer<float>(x[k]) + i, end - i));
  });
  __extension__ using Integer = __int128;
  std::array<Integer, SquareSum::kBins> bins{};
  double not_finite = 0;
  for (const BlockSquares& b : std::span(blocks, n)) {
    if (!b.finite()) ++not_finite;
    for (int i = 0; b.finite() && i < 3; ++i)
      bins[static_cast<int>(b.top) - i] += static_cast<Integer>(b.parts[i]);
  }
  constexpr Integer kUnit = Integer{1} << SquareSum::kWidth;
  for (int b = 0; b < SquareSum::kBins; ++b) {
    words[2 * b] = static_cast<double>(bins[b] >> SquareSum::kWidth);
    words[2 * b + 1] = static_cast<double>(bins[b] & (kUnit - 1));
  }
  words[2 * SquareSum::kBins] = not_finite;
}

template void reduce_sum(const float*, std::span<const i64>, std::span<const bool>, float*, double*);
template void reduce_sum(const double*, std::span<const i64>, std::span<const bool>, double*, double*);
template void reduce_sum(const bf16*, std::span<const i64>, std::span<const bool>, float*, double*);

namespace {

SmallVector<bool, 8> flags_of(const View& x, u32 over) {
  SmallVector<bool, 8> flags(x.shape.size());
  for (std::size_t d = 0; d < flags.size(); ++d) flags[d] = (over >> d & 1) != 0;
  return flags;
}

}  // namespace

void add_reductions(Kernels& t) {
  t.sum.run = [](const View& x, const u32& over, const View& y, const View& workspace) {
    visit_activation(x.dtype, [&](auto zero, auto element) {
      reduce_sum(pointer<decltype(element)>(x), x.shape, flags_of(x, over), pointer<decltype(zero)>(y),
                 pointer<double>(workspace));
    });
  };
  t.sum_workspace = [](const View& x, u32 over) { return reduce_workspace(x.shape, flags_of(x, over)); };
  t.sum_squares.run = [](const Views& x, const View& y, const View& workspace) {
    sum_squares(x, pointer<double>(y), pointer<double>(workspace));
  };
  t.sum_squares_workspace = sum_squares_workspace;
}

}  // namespace redco::kernels
