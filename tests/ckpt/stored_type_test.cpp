#include "ckpt/stored_type.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "base/error.h"

namespace redco::ckpt {
namespace {

using S = StoredType;
using Bytes = std::vector<unsigned char>;
constexpr StoredType kAll[] = {StoredType::boolean, StoredType::u8,   StoredType::i8,  StoredType::i16,
                               StoredType::f16,     StoredType::bf16, StoredType::i32, StoredType::f32,
                               StoredType::f64,     StoredType::i64};

// The format's definition in double: sign * 2^(e-15) * 1.m, subnormals 2^-14 * 0.m.
double half_value(u32 h) {
  double m = h & 0x3ff;
  int e = h >> 10 & 31;
  double v = e == 31 ? (m == 0 ? INFINITY : NAN) : e == 0 ? std::ldexp(m, -24) : std::ldexp(1024 + m, e - 25);
  return h & 0x8000 ? -v : v;
}

TEST(StoredType, NamesAreThoseOfTheHeader) {
  for (StoredType t : kAll) EXPECT_EQ(stored_type(name_of(t)), t);
  for (const char* no : {"", "f32", "F8_E4M3", "U16", "BF16 "})
    EXPECT_EQ(stored_type(no), std::nullopt) << no;
}

TEST(StoredType, EveryHalfConvertsToItsValueAndBack) {
  for (u32 h = 0; h < 0x10000; ++h) {
    float f = from_f16(static_cast<std::uint16_t>(h));
    double v = half_value(h);
    if (std::isnan(v)) {
      ASSERT_TRUE(std::isnan(f)) << h;
      ASSERT_TRUE(std::isnan(from_f16(to_f16(f)))) << h;
    } else {
      ASSERT_EQ(static_cast<double>(f), v) << h;
      ASSERT_EQ(std::signbit(f), std::signbit(v)) << h;
      ASSERT_EQ(to_f16(f), h);
    }
  }
}

// Round to nearest, ties to even, checked against the neighbours in double.
TEST(StoredType, FloatsRoundToTheNearestHalf) {
  std::mt19937 gen(1);
  std::vector<float> xs;
  for (u32 h = 0; h < 0x7bff; ++h) {  // each midpoint and its neighbours
    float mid = static_cast<float>((half_value(h) + half_value(h + 1)) / 2);
    for (float x : {mid, std::nextafterf(mid, 0), std::nextafterf(mid, INFINITY)}) xs.push_back(x);
  }
  for (float x : xs) {
    u32 h = to_f16(x);
    double d = std::fabs(half_value(h) - x);
    for (u32 other : {h - 1, h + 1}) {
      if (other >= 0x7c00) continue;
      double o = std::fabs(half_value(other) - x);
      ASSERT_TRUE(d < o || (d == o && h % 2 == 0)) << x;
    }
  }
  EXPECT_EQ(to_f16(65519.996F), 0x7bff);  // below the midpoint to 2^16
  EXPECT_EQ(to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(to_f16(-INFINITY), 0xfc00);
  EXPECT_EQ(to_f16(1e-30F), 0);
}

TEST(StoredType, FloatsRoundToTheNearestBfloat16) {
  EXPECT_EQ(to_bf16(1.0F), 0x3f80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie: even
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(to_bf16(-INFINITY), 0xff80);
  u32 nan = to_bf16(std::bit_cast<float>(0x7f800001u));  // its payload is in the removed bits
  EXPECT_EQ(nan & 0x7f80, 0x7f80u);
  EXPECT_NE(nan & 0x7f, 0u);
}

TEST(StoredType, DoublesAndIntegersAreRoundedOnce) {
  // 1 + 2^-8 (a tie in bf16) + 2^-40: rounding to float first would lose the last term and round down.
  double x = 1 + 0x1p-8 + 0x1p-40;
  std::uint16_t out = 0;
  EXPECT_EQ(encode(StoredType::bf16, &x, 1, reinterpret_cast<unsigned char*>(&out)), -1);
  EXPECT_EQ(out, 0x3f81);
  double y = 1 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(encode(StoredType::f16, &y, 1, reinterpret_cast<unsigned char*>(&out)), -1);
  EXPECT_EQ(out, 0x3c01);
  i64 n = (i64{1} << 62) + (i64{1} << 54) + 1;  // just above a tie
  EXPECT_EQ(encode(StoredType::bf16, &n, 1, reinterpret_cast<unsigned char*>(&out)), -1);
  EXPECT_EQ(out, 0x5e81);
}

template <class T>
void round_trip(const std::vector<T>& values, std::initializer_list<StoredType> types) {
  for (StoredType t : types) {
    Bytes bytes(values.size() * static_cast<size_t>(size_of(t)) + 1);
    ASSERT_EQ(encode(t, values.data(), static_cast<i64>(values.size()), bytes.data() + 1), -1) << name_of(t);
    std::vector<T> back(values.size());
    ASSERT_EQ(decode(t, bytes.data() + 1, static_cast<i64>(values.size()), back.data()), -1) << name_of(t);
    EXPECT_EQ(back, values) << name_of(t);
  }
}

TEST(StoredType, ValuesInRangeRoundTrip) {
  round_trip<float>({0, 1},
                    {S::boolean, S::u8, S::i8, S::i16, S::f16, S::bf16, S::i32, S::f32, S::f64, S::i64});
  round_trip<float>({0, -1.5, 96, 0.0078125, -INFINITY, INFINITY}, {S::f16, S::bf16, S::f32, S::f64});
  round_trip<float>({-128, 127, 0}, {S::i8, S::i16, S::i32, S::i64, S::f16, S::f32});
  round_trip<double>({M_PI, -1e300, 5e-324}, {S::f64});
  round_trip<double>({-9223372036854775808.0, 4503599627370497.0}, {S::i64, S::f64});
  round_trip<i32>({0, 127}, {S::u8, S::i8, S::i16, S::i32, S::i64});
  round_trip<i64>({0, 1}, {S::boolean, S::u8, S::i8, S::i16, S::i32, S::i64});
  round_trip<i32>({INT32_MIN, INT32_MAX, -7}, {S::i32, S::i64});
  round_trip<i64>({INT64_MIN, INT64_MAX, -7}, {S::i64});
}

TEST(StoredType, ValuesThatDoNotFitAreReportedNotWrapped) {
  Bytes b(64);
  auto bad = [&]<class T>(StoredType t, std::vector<T> v) {
    return encode(t, v.data(), static_cast<i64>(v.size()), b.data());
  };
  EXPECT_EQ(bad(S::f16, std::vector<float>{1, 70000}), 1);
  EXPECT_EQ(bad(S::f16, std::vector<i32>{65520}), 0);
  EXPECT_EQ(bad(S::bf16, std::vector<float>{3.4e38F}), 0);
  EXPECT_EQ(bad(S::f32, std::vector<double>{0, 1e39}), 1);
  EXPECT_EQ(bad(S::i64, std::vector<float>{0.5}), 0);
  EXPECT_EQ(bad(S::i64, std::vector<float>{NAN}), 0);
  EXPECT_EQ(bad(S::i64, std::vector<float>{9223372036854775808.0F}), 0);
  EXPECT_EQ(bad(S::i32, std::vector<i64>{1, 2, i64{1} << 31}), 2);
  EXPECT_EQ(bad(S::u8, std::vector<i32>{-1}), 0);
  EXPECT_EQ(bad(S::u8, std::vector<double>{256}), 0);
  EXPECT_EQ(bad(S::boolean, std::vector<i32>{2}), 0);
  i64 wide[] = {5, -(i64{1} << 31) - 1};
  i32 narrow[2];
  EXPECT_EQ(decode(S::i64, reinterpret_cast<unsigned char*>(wide), 2, narrow), 1);
  double huge[] = {0, -1e39};
  float f[2];
  EXPECT_EQ(decode(S::f64, reinterpret_cast<unsigned char*>(huge), 2, f), 1);
  EXPECT_THROW(decode(S::f32, b.data(), 1, narrow), BugError);
}

}  // namespace
}  // namespace redco::ckpt
