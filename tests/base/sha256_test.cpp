#include "base/sha256.h"

#include <gtest/gtest.h>

#include "support/temp_dir.h"

namespace redco {
namespace {

std::string of(const std::string& text) {
  Sha256 sum;
  sum.update(text);
  return sum.hex();
}

// The examples of FIPS 180-2, and lengths around a block's.
TEST(Sha256, KnownHashes) {
  EXPECT_EQ(of(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(of("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(of(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, PiecesAndFilesGiveTheSameHash) {
  const test::TempDir dir{test::TempDir::in_memory};
  for (const std::size_t n : {1, 55, 56, 63, 64, 65, 119, 120, 1000}) {
    const std::string text(n, 'x');
    Sha256 pieces;
    for (std::size_t i = 0; i < n; i += 7) pieces.update(std::string_view(text).substr(i, 7));
    EXPECT_EQ(pieces.hex(), of(text)) << n;
    test::spill(dir / "f", text);
    EXPECT_EQ(sha256_of_file(dir / "f"), of(text)) << n;
  }
}

}  // namespace
}  // namespace redco
