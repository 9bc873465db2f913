#include "ops/input_moments.h"

#include <gtest/gtest.h>

#include "ops/create.h"
#include "ops/linear.h"
#include "support/ranks.h"

namespace redco {
namespace {

using redco::testing::on_mesh;

constexpr i64 kMomentRows = 12, kMomentColumns = 8;

std::vector<float> moment_numbers(i64 n, u64 seed) {
  redco::testing::Random random(seed);
  std::vector<float> out;
  for (i64 i = 0; i < n; ++i) out.push_back(static_cast<float>(static_cast<i64>(random.next() % 17) - 8) / 8);
  return out;
}

// Two weights with one input, cut along their outputs or their inputs, in two passes: means over all rows.
TEST(InputMoments, AreThoseOfAllRowsOnEveryMesh) {
  const std::vector<float> x = moment_numbers(kMomentRows * kMomentColumns, 1);
  for (const Mesh& mesh : {Mesh(1, 1), Mesh(2, 1), Mesh(1, 2), Mesh(2, 2), Mesh(1, 4)})
    for (const int cut : {0, 1})
      on_mesh(mesh, [&](Context&) {
        Layout rows, weight;
        rows[Axis::dp] = Placement::sharded(0);
        weight[Axis::mp] = Placement::sharded(cut, 4);
        const Tensor in = from_values({kMomentRows, kMomentColumns}, x, rows);
        const Tensor a = from_values({4, kMomentColumns}, moment_numbers(4 * kMomentColumns, 2), weight);
        const Tensor b = from_values({6, kMomentColumns}, moment_numbers(6 * kMomentColumns, 3), weight);
        NoGrad off;
        const Tensor other = from_values({4, kMomentColumns}, moment_numbers(4 * kMomentColumns, 4), weight);
        InputMoments moments({a, b}, kMomentColumns * kMomentColumns * 4);
        for (int pass = 0; pass < 2; ++pass) {
          linear(in, Tensors{a, b}, Tensors(2));
          linear(in, a);      // the memory has no room for its products
          linear(in, other);  // not asked for
        }
        int calls = 0;
        moments.take([&](const InputMoments::Product& p) {
          ASSERT_EQ(p.weights.size(), calls == 0 ? 2U : 1U);
          ASSERT_EQ(p.products.size(),
                    calls == 0 ? static_cast<std::size_t>(kMomentColumns * kMomentColumns) : 0U);
          for (i64 i = 0; i < kMomentColumns; ++i)
            for (i64 k = 0; k < kMomentColumns; ++k) {
              float sum = 0;
              for (i64 r = 0; r < kMomentRows; ++r)
                sum += x[r * kMomentColumns + i] * x[r * kMomentColumns + k];
              if (calls == 0) EXPECT_NEAR(p.products[i * kMomentColumns + k], sum / kMomentRows, 1e-6F);
              if (i == k) EXPECT_NEAR(p.squares[i], sum / kMomentRows, 1e-6F);
            }
          ++calls;
        });
        EXPECT_EQ(calls, 2);
      });
}

}  // namespace
}  // namespace redco
