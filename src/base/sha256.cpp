#include "base/sha256.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/file.h"

namespace redco {

namespace {

constexpr std::size_t kBlock = 64;
// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
constexpr std::array<u32, 64> kRounds{
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::block(const unsigned char* b) {
  std::array<u32, 64> w{};
  for (std::size_t i = 0; i < 16; ++i)
    w[i] = u32{b[4 * i]} << 24 | u32{b[4 * i + 1]} << 16 | u32{b[4 * i + 2]} << 8 | u32{b[4 * i + 3]};
  for (std::size_t i = 16; i < 64; ++i) {
    const u32 s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const u32 s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b1, c, d, e, f, g, h] = h_;
  for (std::size_t i = 0; i < 64; ++i) {
    const u32 s1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const u32 t1 = h + s1 + ((e & f) ^ (~e & g)) + kRounds[i] + w[i];
    const u32 s0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const u32 t2 = s0 + ((a & b1) ^ (a & c) ^ (b1 & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b1, b1 = a, a = t1 + t2;
  }
  const std::array<u32, 8> sum{a, b1, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) h_[i] += sum[i];
}

void Sha256::update(std::string_view bytes) {
  bytes_ += bytes.size();
  held_ += bytes;
  std::size_t at = 0;
  for (; held_.size() - at >= kBlock; at += kBlock)
    block(reinterpret_cast<const unsigned char*>(held_.data()) + at);
  held_.erase(0, at);
}

std::string Sha256::hex() {
  const u64 bits = bytes_ * 8;
  std::string end(1, '\x80');
  end.append((2 * kBlock - 9 - held_.size()) % kBlock, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) end += static_cast<char>(bits >> shift);
  update(end);
  std::string out;
  for (const u32 word : h_) out += fmt::format("{:08x}", word);
  return out;
}

std::string sha256_of_file(const std::string& path) {
  const ReadFile file = ReadFile::open(path);
  Sha256 sum;
  std::string piece(1 << 20, '\0');
  for (i64 at = 0; at < file.size();) {
    const i64 n = std::min(static_cast<i64>(piece.size()), file.size() - at);
    file.pread_exact(at, piece.data(), n);
    sum.update(std::string_view(piece).substr(0, static_cast<std::size_t>(n)));
    at += n;
  }
  return sum.hex();
}

}  // namespace redco
