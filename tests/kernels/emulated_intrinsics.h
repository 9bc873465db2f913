// The intrinsics that products of bf16 use (AVX-512, AVX512-BF16, AMX), computed element by element: to
// include before the kernels. As on a CPU, aligned accesses need their alignment and masked ones touch only
// the selected elements; tiles must be configured. Numbers that are not normal are not treated as on a CPU.
#pragma once

#include <gtest/gtest.h>
#include <immintrin.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/types.h"
#include "kernels/cpu/elementwise.h"

// Of types that are arguments of templates.
#pragma GCC diagnostic ignored "-Wignored-attributes"

namespace redco::kernels::emulated {

// T: a type of elements; V: of a vector.
template <class T, class V>
using Elements = std::array<T, sizeof(V) / sizeof(T)>;
template <class T, class V>
Elements<T, V> elements_of(const V& v) {
  return std::bit_cast<Elements<T, V>>(v);
}

template <class V, class T>
V load_selected(std::uint32_t mask, const void* from) {
  Elements<T, V> x{};
  for (std::size_t i = 0; i < x.size(); ++i)
    if (mask >> i & 1) std::memcpy(&x[i], static_cast<const char*>(from) + i * sizeof(T), sizeof(T));
  return std::bit_cast<V>(x);
}
template <class T, class V>
void store_selected(void* to, std::uint32_t mask, const V& v) {
  const auto x = elements_of<T>(v);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (mask >> i & 1) std::memcpy(static_cast<char*>(to) + i * sizeof(T), &x[i], sizeof(T));
}
template <class V>
V load(const void* from, bool aligned) {
  EXPECT_TRUE(!aligned || std::bit_cast<std::uintptr_t>(from) % sizeof(V) == 0);
  V v;
  std::memcpy(&v, from, sizeof(V));
  return v;
}
template <class V>
void store(void* to, const V& v, bool aligned) {
  EXPECT_TRUE(!aligned || std::bit_cast<std::uintptr_t>(to) % sizeof(V) == 0);
  std::memcpy(to, &v, sizeof(V));
}

inline __m512 add(const __m512& a, const __m512& b) {
  auto x = elements_of<float>(a);
  const auto y = elements_of<float>(b);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] += y[i];
  return std::bit_cast<__m512>(x);
}
inline __m512i fill(int value) {
  Elements<int, __m512i> x;
  x.fill(value);
  return std::bit_cast<__m512i>(x);
}

// To bf16, those of `low` first.
inline __m512i rounded(const __m512& high, const __m512& low) {
  Elements<std::uint16_t, __m512i> out;
  const auto x = elements_of<float>(low), y = elements_of<float>(high);
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = narrow(x[i]).bits;
    out[16 + i] = narrow(y[i]).bits;
  }
  return std::bit_cast<__m512i>(out);
}
inline __m256i rounded(const __m512& v) {
  Elements<std::uint16_t, __m256i> out;
  const auto x = elements_of<float>(v);
  for (std::size_t i = 0; i < 16; ++i) out[i] = narrow(x[i]).bits;
  return std::bit_cast<__m256i>(out);
}
inline float widened(std::uint16_t bits) { return wide(bf16{bits}); }

inline __m512 add_products(const __m512& sums, const __m512i& a, const __m512i& b) {
  auto s = elements_of<float>(sums);
  const auto x = elements_of<std::uint16_t>(a), y = elements_of<std::uint16_t>(b);
  for (std::size_t i = 0; i < s.size(); ++i) {
    s[i] = std::fma(widened(x[2 * i + 1]), widened(y[2 * i + 1]), s[i]);
    s[i] = std::fma(widened(x[2 * i]), widened(y[2 * i]), s[i]);
  }
  return std::bit_cast<__m512>(s);
}

// For each 128 bits: the lower or higher elements of a and b, alternately.
template <class T>
__m512i interleave(const __m512i& a, const __m512i& b, bool high) {
  constexpr std::size_t n = 16 / sizeof(T);
  const auto x = elements_of<T>(a), y = elements_of<T>(b);
  Elements<T, __m512i> out;
  for (std::size_t lane = 0; lane < out.size(); lane += n)
    for (std::size_t i = 0; i < n / 2; ++i) {
      const std::size_t from = lane + i + (high ? n / 2 : 0);
      out[lane + 2 * i] = x[from];
      out[lane + 2 * i + 1] = y[from];
    }
  return std::bit_cast<__m512i>(out);
}
inline __m512i choose16(const __m512i& index, const __m512i& v) {
  const auto from = elements_of<std::uint16_t>(index), x = elements_of<std::uint16_t>(v);
  Elements<std::uint16_t, __m512i> out;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = x[from[i] % 32];
  return std::bit_cast<__m512i>(out);
}
using Lane = std::array<std::uint64_t, 2>;
inline __m512i choose128(const __m512i& a, const __m512i& b, unsigned code) {
  const auto x = elements_of<Lane>(a), y = elements_of<Lane>(b);
  return std::bit_cast<__m512i>(
      std::array<Lane, 4>{x[code & 3], x[code >> 2 & 3], y[code >> 4 & 3], y[code >> 6 & 3]});
}
using Halves = std::array<__m256i, 2>;
inline __m256i half(const __m512i& v, int k) { return std::bit_cast<Halves>(v)[static_cast<std::size_t>(k)]; }
inline __m512i with_half(const __m512i& v, const __m256i& x, int k) {
  auto out = std::bit_cast<Halves>(v);
  out[static_cast<std::size_t>(k)] = x;
  return std::bit_cast<__m512i>(out);
}

// The tile registers, all of 16 rows of 64 bytes; before configure() and after release() none may be used.
class TileRegisters {
 public:
  void configure(const void* config) {
    std::array<std::uint8_t, 64> c;
    std::memcpy(c.data(), config, 64);
    EXPECT_TRUE(c[0] == 1 && c[1] == 0);
    for (std::size_t i = 0; i < 8; ++i)
      EXPECT_TRUE(c[16 + 2 * i] == 64 && c[17 + 2 * i] == 0 && c[48 + i] == 16) << "tile " << i;
    configured_ = true;
    tiles_ = {};
  }
  void release() { configured_ = false; }
  void zero(int t) { tile(t) = {}; }
  void load(int t, const void* from, i64 bytes) {
    for (i64 r = 0; r < 16; ++r)
      std::memcpy(tile(t)[static_cast<std::size_t>(r)].data(), static_cast<const char*>(from) + r * bytes,
                  64);
  }
  void store(int t, void* to, i64 bytes) {
    for (i64 r = 0; r < 16; ++r)
      std::memcpy(static_cast<char*>(to) + r * bytes, tile(t)[static_cast<std::size_t>(r)].data(), 64);
  }
  // Even and odd elements of a pair have separate sums, which then are added.
  void add_products(int to, int a, int b) {
    const Tile left = tile(a), right = tile(b);
    for (std::size_t m = 0; m < 16; ++m) {
      auto sums = std::bit_cast<std::array<float, 16>>(tile(to)[m]);
      for (std::size_t n = 0; n < 16; ++n) {
        float even = 0, odd = 0;
        for (std::size_t k = 0; k < 16; ++k) {
          const std::uint32_t x = left[m][k], y = right[k][n];
          even = std::fma(low(x), low(y), even);
          odd = std::fma(high(x), high(y), odd);
        }
        sums[n] += even + odd;
      }
      tile(to)[m] = std::bit_cast<Row>(sums);
    }
  }

 private:
  using Row = std::array<std::uint32_t, 16>;
  using Tile = std::array<Row, 16>;
  static float low(std::uint32_t pair) { return widened(static_cast<std::uint16_t>(pair)); }
  static float high(std::uint32_t pair) { return widened(static_cast<std::uint16_t>(pair >> 16)); }
  Tile& tile(int t) {
    EXPECT_TRUE(configured_);
    return tiles_.at(static_cast<std::size_t>(t));
  }
  bool configured_ = false;
  std::array<Tile, 8> tiles_{};
};
inline TileRegisters tile_registers;

}  // namespace redco::kernels::emulated

#undef _mm256_mask_storeu_epi16
#undef _mm256_maskz_loadu_epi16
#undef _mm512_add_ps
#undef _mm512_cvtne2ps_pbh
#undef _mm512_cvtneps_pbh
#undef _mm512_dpbf16_ps
#undef _mm256_setzero_si256
#undef _mm256_storeu_si256
#undef _mm512_castsi256_si512
#undef _mm512_castsi512_si256
#undef _mm512_extracti64x4_epi64
#undef _mm512_inserti64x4
#undef _mm512_load_ps
#undef _mm512_load_si512
#undef _mm512_loadu_si512
#undef _mm512_mask_storeu_epi32
#undef _mm512_mask_storeu_ps
#undef _mm512_maskz_loadu_epi16
#undef _mm512_maskz_loadu_ps
#undef _mm512_permutexvar_epi16
#undef _mm512_set1_epi32
#undef _mm512_setzero_ps
#undef _mm512_setzero_si512
#undef _mm512_shuffle_i32x4
#undef _mm512_store_ps
#undef _mm512_storeu_si512
#undef _mm512_unpackhi_epi32
#undef _mm512_unpackhi_epi64
#undef _mm512_unpacklo_epi32
#undef _mm512_unpacklo_epi64
#undef _tile_dpbf16ps
#undef _tile_loadconfig
#undef _tile_loadd
#undef _tile_release
#undef _tile_stored
#undef _tile_zero

// Vectors of bf16: without AVX512-BF16, clang converts their elements where they are arguments.
#define __m512bh __m512i
#define _mm256_mask_storeu_epi16(to, m, v) emulated::store_selected<std::uint16_t>(to, m, v)
#define _mm256_maskz_loadu_epi16(m, from) emulated::load_selected<__m256i, std::uint16_t>(m, from)
#define _mm256_setzero_si256() (__m256i{})
#define _mm256_storeu_si256(to, v) emulated::store(to, v, false)
#define _mm512_add_ps(a, b) emulated::add(a, b)
#define _mm512_castsi256_si512(v) emulated::with_half(__m512i{}, v, 0)
#define _mm512_castsi512_si256(v) emulated::half(v, 0)
#define _mm512_cvtne2ps_pbh(high, low) emulated::rounded(high, low)
#define _mm512_cvtneps_pbh(v) emulated::rounded(v)
#define _mm512_dpbf16_ps(sums, a, b) emulated::add_products(sums, a, b)
#define _mm512_extracti64x4_epi64(v, k) emulated::half(v, k)
#define _mm512_inserti64x4(v, x, k) emulated::with_half(v, x, k)
#define _mm512_load_ps(from) emulated::load<__m512>(from, true)
#define _mm512_load_si512(from) emulated::load<__m512i>(from, true)
#define _mm512_loadu_si512(from) emulated::load<__m512i>(from, false)
#define _mm512_mask_storeu_epi32(to, m, v) emulated::store_selected<std::uint32_t>(to, m, v)
#define _mm512_mask_storeu_ps(to, m, v) emulated::store_selected<float>(to, m, v)
#define _mm512_maskz_loadu_epi16(m, from) emulated::load_selected<__m512i, std::uint16_t>(m, from)
#define _mm512_maskz_loadu_ps(m, from) emulated::load_selected<__m512, float>(m, from)
#define _mm512_permutexvar_epi16(index, v) emulated::choose16(index, v)
#define _mm512_set1_epi32(value) emulated::fill(value)
#define _mm512_setzero_ps() (__m512{})
#define _mm512_setzero_si512() (__m512i{})
#define _mm512_shuffle_i32x4(a, b, code) emulated::choose128(a, b, code)
#define _mm512_store_ps(to, v) emulated::store(to, v, true)
#define _mm512_storeu_si512(to, v) emulated::store(to, v, false)
#define _mm512_unpackhi_epi32(a, b) emulated::interleave<std::uint32_t>(a, b, true)
#define _mm512_unpackhi_epi64(a, b) emulated::interleave<std::uint64_t>(a, b, true)
#define _mm512_unpacklo_epi32(a, b) emulated::interleave<std::uint32_t>(a, b, false)
#define _mm512_unpacklo_epi64(a, b) emulated::interleave<std::uint64_t>(a, b, false)
#define _tile_dpbf16ps(to, a, b) emulated::tile_registers.add_products(to, a, b)
#define _tile_loadconfig(config) emulated::tile_registers.configure(config)
#define _tile_loadd(t, from, bytes) emulated::tile_registers.load(t, from, bytes)
#define _tile_release() emulated::tile_registers.release()
#define _tile_stored(t, to, bytes) emulated::tile_registers.store(t, to, bytes)
#define _tile_zero(t) emulated::tile_registers.zero(t)
