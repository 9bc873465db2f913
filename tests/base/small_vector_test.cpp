#include "base/small_vector.h"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace redco {
namespace {

// Elements that own memory, so that the sanitizers see a wrong copy or destruction.
using Owner = std::shared_ptr<int>;
using Small = SmallVector<Owner, 3>;

std::vector<int> values(const auto& v) {
  std::vector<int> out;
  for (const Owner& o : v) out.push_back(*o);
  return out;
}

// Random operations on a SmallVector and a std::vector give equal elements, inside and outside of the object.
TEST(SmallVector, BehavesLikeAVector) {
  std::mt19937 random(1);
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    Small a;
    std::vector<Owner> b;
    for (int step = 0; step < 40; ++step) {
      const Owner x = std::make_shared<int>(static_cast<int>(random() % 1000));
      const std::size_t at = below(b.size() + 1), n = below(4);
      switch (random() % 11) {
        case 0:
        case 1:
          a.push_back(x), b.push_back(x);
          break;
        case 2:
          if (!b.empty()) a.pop_back(), b.pop_back();
          break;
        case 3: {
          const Owner* const in_a = a.insert(a.begin() + at, x);
          const auto in_b = b.insert(b.begin() + at, x);
          EXPECT_EQ(in_a - a.begin(), in_b - b.begin());
          break;
        }
        case 4:
          a.insert(a.begin() + at, n, x), b.insert(b.begin() + at, n, x);
          break;
        case 5: {
          const std::vector<Owner> more(n, x);
          a.insert(a.begin() + at, more.begin(), more.end()),
              b.insert(b.begin() + at, more.begin(), more.end());
          break;
        }
        case 6:
          if (at < b.size()) {
            const std::size_t end = at + below(b.size() - at + 1);
            const Owner* const in_a = a.erase(a.begin() + at, a.begin() + end);
            const auto in_b = b.erase(b.begin() + at, b.begin() + end);
            EXPECT_EQ(in_a - a.begin(), in_b - b.begin());
          }
          break;
        case 7:
          a.resize(b.size() + n, x), b.resize(b.size() + n, x);
          break;
        case 8: {
          Small copy = a;
          a = std::move(copy);
          break;
        }
        case 9:
          a.resize(at), b.resize(at);
          break;
        default:
          if (!b.empty()) a.push_back(a.front()), b.push_back(b.front());
      }
      ASSERT_EQ(values(a), values(b)) << "round " << round << ", step " << step;
      ASSERT_EQ(a == Small(b.begin(), b.end()), true);
    }
  }
}

TEST(SmallVector, MovesTakeTheElements) {
  for (std::size_t n : {2u, 8u}) {
    Small a(n, std::make_shared<int>(7)), b = {std::make_shared<int>(1)};
    b = std::move(a);
    EXPECT_EQ(b.size(), n);
    EXPECT_TRUE(a.empty());  // NOLINT: a moved SmallVector is empty
    a.push_back(b.front());
    EXPECT_EQ(*a.front(), 7);
    EXPECT_EQ(b.front().use_count(), static_cast<long>(n) + 1);
  }
}

TEST(SmallVector, IsOrderedByElements) {
  using Ints = SmallVector<int, 2>;
  EXPECT_LT((Ints{1, 2}), (Ints{1, 3}));
  EXPECT_LT((Ints{1}), (Ints{1, 0, 0}));
  EXPECT_EQ((Ints{1, 2, 3}), (Ints{1, 2, 3}));
}

}  // namespace
}  // namespace redco
