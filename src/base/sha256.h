// SHA-256 (FIPS 180-4), for hashes that must hold against attackers. base/hash.h is faster.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

class Sha256 {
 public:
  void update(std::string_view bytes);
  std::string hex();  // 64 digits. REQUIRES: nothing is called after it

 private:
  void block(const unsigned char* b);  // 64 bytes
  std::array<u32, 8> h_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::string held_;  // fewer than 64 bytes
  u64 bytes_ = 0;
};

// Of a file's bytes. Throws the errors of ReadFile.
std::string sha256_of_file(const std::string& path);

}  // namespace redco
