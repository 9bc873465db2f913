#include "ckpt/stored_type.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "base/half.h"

namespace redco::ckpt {
namespace {

static_assert(std::endian::native == std::endian::little, "safetensors files are little-endian");

struct Half {
  std::uint16_t bits;
};
struct Brain {
  std::uint16_t bits;
};
struct Bool {
  std::uint8_t bits;
};

struct Row {
  const char* name;
  i64 size;
};
constexpr Row kTypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"I16", 2}, {"F16", 2},
                          {"BF16", 2}, {"I32", 4}, {"F32", 4}, {"F64", 8}, {"I64", 8}};

// Calls f with a null pointer to the C++ type of t.
template <class F>
auto with_type(StoredType t, F f) {
  switch (t) {
    case StoredType::boolean:
      return f(static_cast<Bool*>(nullptr));
    case StoredType::u8:
      return f(static_cast<std::uint8_t*>(nullptr));
    case StoredType::i8:
      return f(static_cast<std::int8_t*>(nullptr));
    case StoredType::i16:
      return f(static_cast<std::int16_t*>(nullptr));
    case StoredType::f16:
      return f(static_cast<Half*>(nullptr));
    case StoredType::bf16:
      return f(static_cast<Brain*>(nullptr));
    case StoredType::i32:
      return f(static_cast<i32*>(nullptr));
    case StoredType::f32:
      return f(static_cast<float*>(nullptr));
    case StoredType::f64:
      return f(static_cast<double*>(nullptr));
    case StoredType::i64:
      return f(static_cast<i64*>(nullptr));
  }
  REDCO_CHECK(false, "type {}", static_cast<int>(t));
  return f(static_cast<float*>(nullptr));
}

template <class S>
constexpr bool kFloating = std::is_floating_point_v<S> || std::is_same_v<S, Half> || std::is_same_v<S, Brain>;

// A stored value as the C++ number that represents it exactly.
inline float number(Half h) { return from_f16(h.bits); }
inline float number(Brain b) { return std::bit_cast<float>(static_cast<u32>(b.bits) << 16); }
inline int number(Bool b) { return b.bits != 0; }
template <class S>
inline S number(S s) {
  return s;
}

// Whether the integral type S can represent x. The limits are powers of two, so the comparison is exact.
template <class S, class T>
inline bool holds_integer(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    const T low = static_cast<T>(std::numeric_limits<S>::min());
    const T high = std::ldexp(T{1}, std::numeric_limits<S>::digits);  // first value outside
    return x >= low && x < high && std::nearbyint(x) == x;
  } else {
    return x >= static_cast<i64>(std::numeric_limits<S>::min()) &&
           x <= static_cast<i64>(std::numeric_limits<S>::max());
  }
}

// Rounds a double to float, to odd, so that a second rounding to a half format gives the nearest value.
inline float to_odd(double x) {
  float f = static_cast<float>(x);
  if (static_cast<double>(f) == x || std::isnan(x) || std::isinf(f)) return f;
  u32 bits = std::bit_cast<u32>(f);
  if (bits & 1) return f;
  // f is even and inexact: take the odd neighbour on the side of x.
  bool away = std::fabs(x) > std::fabs(static_cast<double>(f));
  return std::bit_cast<float>(away ? bits + 1 : bits - 1);
}

template <class T>
inline float as_float(T x) {
  if constexpr (std::is_same_v<T, float>) return x;
  if constexpr (std::is_same_v<T, double>) return to_odd(x);
  // Integers beyond 2^53 are rounded to odd twice, which equals rounding once.
  if constexpr (std::is_integral_v<T>) {
    double d = static_cast<double>(x);
    if constexpr (sizeof(T) == 8) {
      // Exact difference in 128 bits; make d odd if inexact.
      __int128 diff = static_cast<__int128>(x) - static_cast<__int128>(d);
      u64 bits = std::bit_cast<u64>(d);
      if (diff != 0 && (bits & 1) == 0)
        d = std::bit_cast<double>((diff > 0) == (x > 0) ? bits + 1 : bits - 1);
    }
    return to_odd(d);
  }
}

}  // namespace

i64 size_of(StoredType t) { return kTypes[static_cast<int>(t)].size; }
const char* name_of(StoredType t) { return kTypes[static_cast<int>(t)].name; }
bool is_float(StoredType t) {
  return t == StoredType::f16 || t == StoredType::bf16 || t == StoredType::f32 || t == StoredType::f64;
}

std::optional<StoredType> stored_type(std::string_view name) {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (name == kTypes[i].name) return static_cast<StoredType>(i);
  return std::nullopt;
}

float from_f16(std::uint16_t h) { return float_of_half(h); }

std::uint16_t to_f16(float x) { return half_of_float(x); }

std::uint16_t to_bf16(float x) { return bf16_of_float(x); }

template <class T>
i64 decode(StoredType from, const unsigned char* bytes, i64 n, T* to) {
  return with_type(from, [&]<class S>(S*) -> i64 {
    if constexpr (std::is_same_v<S, T>) {
      std::memcpy(to, bytes, static_cast<size_t>(n) * sizeof(T));
      return -1;
    } else if constexpr (std::is_integral_v<T> && kFloating<S>) {
      REDCO_CHECK(false, "{} into an integer", name_of(from));
      return 0;
    } else {
      for (i64 i = 0; i < n; ++i) {
        S s;
        std::memcpy(&s, bytes + i * static_cast<i64>(sizeof(S)), sizeof(S));
        auto v = number(s);
        if constexpr (std::is_same_v<T, i32> && std::is_same_v<S, i64>)
          if (!holds_integer<i32>(v)) return i;
        to[i] = static_cast<T>(v);
        if constexpr (std::is_same_v<T, float> && std::is_same_v<S, double>)
          if (std::isinf(to[i]) && !std::isinf(v)) return i;
      }
      return -1;
    }
  });
}

template <class T>
i64 encode(StoredType type, const T* from, i64 n, unsigned char* bytes) {
  return with_type(type, [&]<class S>(S*) -> i64 {
    if constexpr (std::is_same_v<S, T>) {
      std::memcpy(bytes, from, static_cast<size_t>(n) * sizeof(T));
      return -1;
    } else {
      for (i64 i = 0; i < n; ++i) {
        T x = from[i];
        S s;
        if constexpr (std::is_same_v<S, Half>) {
          s = {to_f16(as_float(x))};
          if ((s.bits & 0x7fff) == 0x7c00 && std::isfinite(static_cast<double>(x))) return i;
        } else if constexpr (std::is_same_v<S, Brain>) {
          s = {to_bf16(as_float(x))};
          if ((s.bits & 0x7fff) == 0x7f80 && std::isfinite(static_cast<double>(x))) return i;
        } else if constexpr (std::is_same_v<S, Bool>) {
          if (!(x == 0 || x == 1)) return i;
          s = {static_cast<std::uint8_t>(x != 0)};
        } else if constexpr (std::is_integral_v<S>) {
          if (!holds_integer<S>(x)) return i;
          s = static_cast<S>(x);
        } else {
          s = static_cast<S>(x);
          if constexpr (std::is_same_v<T, double>)
            if (std::isinf(s) && std::isfinite(x)) return i;
        }
        std::memcpy(bytes + i * static_cast<i64>(sizeof(S)), &s, sizeof(S));
      }
      return -1;
    }
  });
}

template i64 decode(StoredType, const unsigned char*, i64, float*);
template i64 decode(StoredType, const unsigned char*, i64, double*);
template i64 decode(StoredType, const unsigned char*, i64, i32*);
template i64 decode(StoredType, const unsigned char*, i64, i64*);
template i64 encode(StoredType, const float*, i64, unsigned char*);
template i64 encode(StoredType, const double*, i64, unsigned char*);
template i64 encode(StoredType, const i32*, i64, unsigned char*);
template i64 encode(StoredType, const i64*, i64, unsigned char*);

}  // namespace redco::ckpt
