// Element types of safetensors files, and conversions between them and types in memory. Files and memory are
// little-endian.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/types.h"

namespace redco::ckpt {

// In the reverse of the order of tensors in a safetensors file with several types, in which each tensor is
// aligned.
enum class StoredType : std::uint8_t { boolean, u8, i8, i16, f16, bf16, i32, f32, f64, i64 };

i64 size_of(StoredType t);
const char* name_of(StoredType t);  // "F32": the spelling in headers
std::optional<StoredType> stored_type(std::string_view name);
bool is_float(StoredType t);

// Converts n elements from a file's bytes (any alignment) to memory. To float and double: every type, rounded
// to nearest; to an integer: integers and booleans only. Returns the index of the first value that doesn't
// fit into T, else -1. REQUIRES: not both T integral and is_float(from).
template <class T>
i64 decode(StoredType from, const unsigned char* bytes, i64 n, T* to);

// Converts n elements from memory to a file's bytes. Floats are rounded to nearest even. Returns the index of
// the first value that `to` can't represent, else -1: a finite value that would become infinite, one outside
// an integer's range, or a fraction, an infinity or a NaN for an integer type.
template <class T>
i64 encode(StoredType to, const T* from, i64 n, unsigned char* bytes);

// T: float, double, i32, i64.

// The type whose bytes in a file are those of T in memory.
template <class T>
constexpr StoredType kNative = std::is_same_v<T, float>    ? StoredType::f32
                               : std::is_same_v<T, double> ? StoredType::f64
                               : std::is_same_v<T, i32>    ? StoredType::i32
                                                           : StoredType::i64;

float from_f16(std::uint16_t bits);
std::uint16_t to_f16(float x);  // round to nearest even, overflow to infinity, NaN stays NaN
std::uint16_t to_bf16(float x);

}  // namespace redco::ckpt
