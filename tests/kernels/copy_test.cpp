#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/cpu/elementwise.h"
#include "kernels/kernels_testing.h"

namespace redco::kernels {
namespace {

template <class E>
void check(const Shape& shape, const Shape& is, const Shape& os) {
  i64 in_size = 1, out_size = 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    in_size += std::max<i64>(0, shape[d] - 1) * is[d];
    out_size += std::max<i64>(0, shape[d] - 1) * os[d];
  }
  std::vector<E> in(static_cast<std::size_t>(in_size)), out(static_cast<std::size_t>(out_size), E(77)),
      want(out);
  for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<E>(i * 2654435761u);
  for (i64 i = 0; i < numel(shape); ++i) {
    i64 rest = i, a = 0, b = 0;
    for (std::size_t d = shape.size(); d-- > 0;) {
      a += rest % shape[d] * is[d];
      b += rest % shape[d] * os[d];
      rest /= shape[d];
    }
    want[b] = in[a];
  }
  copy_strided(in.data(), is, out.data(), os, shape, sizeof(E));
  EXPECT_TRUE(same_bits(out, want)) << to_string(shape) << to_string(is) << to_string(os) << sizeof(E);
}

void check_sizes(const Shape& shape, const Shape& is, const Shape& os) {
  check<std::uint8_t>(shape, is, os);
  check<std::uint16_t>(shape, is, os);
  check<std::uint32_t>(shape, is, os);
  check<std::uint64_t>(shape, is, os);
}

TEST(CopyStrided, AgreesWithTheSlowTwin) {
  check_sizes({}, {}, {});
  check_sizes({0, 3}, {3, 1}, {3, 1});
  check_sizes({1, 1}, {5, 7}, {9, 2});
  check_sizes({37}, {1}, {1});
  check_sizes({37}, {3}, {2});
  check_sizes({5, 7}, {7, 1}, {7, 1});
  check_sizes({5, 7}, {9, 1}, {7, 1});
  check_sizes({70, 45}, {45, 1}, {1, 70});  // transpose
  check_sizes({300, 200}, {1, 300}, {200, 1});
  check_sizes({2, 5, 3, 8}, {120, 24, 8, 1}, {120, 8, 40, 1});  // B T H D -> B H T D
  check_sizes({2, 5, 3, 8}, {120, 24, 8, 1}, {120, 1, 40, 5});  // -> B H D T
  check_sizes({3, 4, 5, 6}, {120, 30, 6, 1}, {1, 3, 12, 60});   // all reversed
  check_sizes({3, 4, 5, 6}, {1, 3, 12, 60}, {120, 30, 6, 1});
  check_sizes({4, 6}, {0, 1}, {6, 1});  // broadcast
  check_sizes({4, 6}, {1, 0}, {6, 1});
  check_sizes({2, 20000}, {20000, 1}, {20001, 1});
  check_sizes({20000, 3}, {3, 1}, {4, 1});
}

}  // namespace
}  // namespace redco::kernels
