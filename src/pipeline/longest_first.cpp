#include "pipeline/longest_first.h"

#include <algorithm>
#include <numeric>

namespace redco {

std::vector<i64> longest_first(i64 n, const std::function<i64(i64)>& length) {
  std::vector<i64> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), i64{0});
  std::ranges::stable_sort(order, [&](i64 a, i64 b) { return length(a) > length(b); });
  return order;
}

}  // namespace redco
