#include "kernels/cpu/products/products.h"

#include <algorithm>

#include "base/error.h"
#include "kernels/cpu/pool.h"
#include "kernels/cpu/products/few_rows.h"
#include "kernels/cpu/products/limits.h"
#include "kernels/cpu/products/tiles.h"

namespace redco::kernels {
namespace {

// A product on its path: its pieces are [first, first + count) of all.
struct Work {
  const Product* product;
  Path path;
  FewRows few;  // or
  Tiles tiles;
  i64 first = 0, count = 0;
};
using Works = SmallVector<Work, 3>;

Works works_of(std::span<const Product> all, Unit unit) {
  Works works;
  i64 first = 0;
  for (const Product& p : all) {
    if (p.m <= 0 || p.n <= 0) continue;
    Work w{.product = &p, .path = path_of(p, unit), .few = {}, .tiles = {}, .first = first};
    if (has_tiles(w.path)) {
      w.tiles = tiles_of(p, unit, w.path, omp_get_max_threads());
      w.count = w.tiles.count();
    } else {
      w.few = FewRows(p, w.path);
      w.count = w.few.pieces();
    }
    first += w.count;
    works.push_back(w);
  }
  return works;
}

// The workspace: the left operands of all products of few rows, then a room for each thread that computes
// tiles.
struct Space {
  i64 few_rows = 0, room = 0, rooms = 1;
  i64 size() const { return few_rows + room * rooms; }
};
Space space_of(const Works& works) {
  Space s;
  i64 tiles = 0;
  for (const Work& w : works) {
    if (has_tiles(w.path)) {
      s.room = std::max(s.room, w.tiles.room());
      tiles += w.count;
    } else {
      s.few_rows += w.few.room();
    }
  }
  const i64 threads = omp_get_max_threads();
  s.rooms = tiles > 0 ? std::min(tiles, threads) : threads;
  return s;
}

// Element visits, for the choice of threads. A multiply-add in a tile is much cheaper than a visit.
i64 visits_of(const Work& w) {
  if (!has_tiles(w.path)) return w.few.work();
  i64 k = 0;
  for (const Term& t : w.product->terms) k += t.k;
  return w.product->m * w.product->n * std::min<i64>(k, i64{1} << 20) / 8;
}

}  // namespace

i64 products_workspace(std::span<const Product> all, bool bf16) {
  return space_of(works_of(all, unit_of(bf16))).size();
}

i64 stored_product_workspace(i64 n, i64 k, DType b, bool trans, bool bf16) {
  if (n <= 0 || k <= 0) return 0;
  const Unit unit = unit_of(bf16);
  const auto of_rows = [&](i64 m) {
    return Product{.m = m, .n = n, .terms = {{.a = {}, .b = {.type = b, .trans = trans}, .k = k}}};
  };
  constexpr i64 kMany = i64{1} << 20;
  // Of each kind of tiles, those for one thread with the most rows have the largest rooms; any number of rows
  // has at most one for each thread.
  const i64 threads = omp_get_max_threads();
  i64 most = 0;
  for (const i64 m : {kTransposedRows, kTransposedFullRows, kMany}) {
    const Product p = of_rows(m);
    most = std::max(most, tiles_of(p, unit, path_of_tiles(p, unit), 1).room() * threads);
  }
  for (const i64 m : {i64{1}, kMany}) {
    const Product p = of_rows(m);
    if (const Path path = path_of(p, unit); !has_tiles(path)) most = std::max(most, FewRows(p, path).room());
  }
  return most;
}

void products(std::span<const Product> all, bool bf16, std::span<float> workspace) {
  const Unit unit = unit_of(bf16);
  Works works = works_of(all, unit);
  if (works.empty()) return;
  const Space space = space_of(works);
  REDCO_CHECK(space.size() <= static_cast<i64>(workspace.size()),
              "products need {} + {} x {} elements of workspace, and got {}", space.few_rows, space.room,
              space.rooms, workspace.size());
  float* room_of_few = workspace.data();
  float* const rooms = workspace.data() + space.few_rows;
  i64 visits = 0, pieces = 0;
  bool all_few = true;
  for (Work& w : works) {
    visits += visits_of(w);
    pieces += w.count;
    all_few = all_few && !has_tiles(w.path);
    if (has_tiles(w.path)) continue;
    w.few.prepare(room_of_few);
    room_of_few += w.few.room();
  }
  const auto run = [&](i64 i, i64 room) {
    const Work* w = &works.back();
    while (w->first > i) --w;
    i -= w->first;
    if (!has_tiles(w->path)) return w->few.run(i);
    multiply_tile(*w->product, unit, w->tiles.tile(i), w->tiles, rooms + room * space.room);
  };
  // Pieces of few rows take equal times of some microseconds: each thread gets neighbours,
  // because to ask for each piece costs a sixth of the time.
  if (all_few) return for_each(pieces, visits, [&](i64 i) { run(i, 0); });
  for_each_in_rooms(space.rooms, pieces, visits, run);
}

}  // namespace redco::kernels
