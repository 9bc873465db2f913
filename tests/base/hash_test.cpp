#include "base/hash.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace redco {
namespace {

// Test vectors of the XXH3 specification: the empty input, and the output of xxhsum for "abc".
TEST(Hash, MatchesTheTestVectors) {
  EXPECT_EQ(hex64(hash64("")), "2d06800538d394c2");
  EXPECT_EQ(hash128("").hex(), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hex64(hash64("abc")), "78af5f94892f3950");
  EXPECT_EQ(hash128("abc").hex(), "06b05ab6733a618578af5f94892f3950");
  EXPECT_NE(hash64("abc", 1), hash64("abc"));
}

TEST(Hash, PiecesEqualTheWhole) {
  std::string bytes;
  for (int i = 0; i < 5000; ++i) bytes += static_cast<char>(i * 7 + i / 256);
  // Short, middle and long inputs are hashed by different code.
  for (const std::size_t n : {0, 1, 3, 16, 17, 128, 240, 241, 1024, 5000}) {
    for (const std::size_t piece : {1, 7, 64, 1000}) {
      Hasher h;
      for (std::size_t i = 0; i < n; i += piece) h.update(bytes.data() + i, std::min(piece, n - i));
      EXPECT_EQ(h.digest64(), hash64({bytes.data(), n})) << n << " " << piece;
      EXPECT_EQ(h.digest128(), hash128({bytes.data(), n})) << n << " " << piece;
    }
  }
}

TEST(Hash, TheHashOfAFileIsThatOfItsBytes) {
  const std::string path = testing::TempDir() + "redco_hash_test";
  const std::string bytes(3 << 20, 'q');
  std::ofstream(path) << bytes;
  EXPECT_EQ(hash_file(path), hash128(bytes));
  std::filesystem::remove(path);
  EXPECT_THROW(hash_file(path), UsageError);
  EXPECT_THROW(hash_file(testing::TempDir()), UsageError);
}

}  // namespace
}  // namespace redco
