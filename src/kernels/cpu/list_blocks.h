// One parallel loop over the elements of a list of tensors: a loop for each small tensor costs more than its
// elements.
#pragma once

#include "kernels/cpu/lists.h"
#include "kernels/cpu/pool.h"

namespace redco::kernels {

// Calls f(block, k, begin, end) for the elements [begin, end) of view k. The elements of the list, one view
// after another, are cut into blocks of kBlock. A block that crosses borders of views has several calls, in
// order on one thread.
template <class F>
void for_list_blocks(const Views& list, const F& f) {
  const i64 n = total_numel(list), blocks = ceil_div(n, kBlock);
  // A piece searches for its first view. So that the search costs nothing for long lists, pieces of large
  // models have several blocks.
  constexpr i64 kPieces = 1024;
  const i64 piece = std::max<i64>(1, ceil_div(blocks, kPieces));
  for_each(ceil_div(blocks, piece), n, [&](i64 i) {
    std::size_t k = 0;
    i64 first = 0;  // element of the list with which view k begins
    for (i64 block = i * piece, last = std::min(blocks, block + piece); block < last; ++block) {
      if (block > i * piece) background::poll();
      const i64 end = std::min(n, (block + 1) * kBlock);
      for (i64 at = block * kBlock; at < end;) {
        i64 size = list[k].numel();
        for (; first + size <= at; size = list[k].numel()) {
          first += size;
          ++k;
        }
        const i64 till = std::min(end, first + size);
        f(block, k, at - first, till - first);
        at = till;
      }
    }
  });
}

}  // namespace redco::kernels
