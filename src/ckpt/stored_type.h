// Element types of safetensors files, and conversions between them and the types of memory. Files and memory
// are little-endian.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco::ckpt {

// In the order in which safetensors lays tensors of several types out in a file (last first), so that each is
// aligned.
enum class StoredType : std::uint8_t { boolean, u8, i8, i16, f16, bf16, i32, f32, f64, i64 };

i64 size_of(StoredType t);
const char* name_of(StoredType t);  // "F32": the header's spelling
std::optional<StoredType> stored_type(std::string_view name);
bool is_float(StoredType t);

// n elements in a file's bytes (any alignment) to memory. To float and double: every type, rounded to
// nearest; to an integer: integers and booleans only. The first value that doesn't fit into T is returned as
// its index, else -1. REQUIRES: not both T integral and is_float(from).
template <class T>
i64 decode(StoredType from, const unsigned char* bytes, i64 n, T* to);

// n elements of memory to a file's bytes. Floats are rounded to nearest even. Returns the index of the first
// value that `to` can't hold, else -1: a finite one that would become infinite, one outside an integer's
// range, or a fraction, an infinity or a NaN given to an integer type.
template <class T>
i64 encode(StoredType to, const T* from, i64 n, unsigned char* bytes);

// T: float, double, i32, i64.

float from_f16(std::uint16_t bits);
std::uint16_t to_f16(float x);  // round to nearest even, overflow to infinity, NaN stays NaN
std::uint16_t to_bf16(float x);

}  // namespace redco::ckpt
