#include "base/base64.h"

#include <array>

#include "base/error.h"
#include "base/types.h"

namespace redco {
namespace {

constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

}  // namespace

std::string encode_base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t k = 0; k < bytes.size(); k += 3) {
    u32 bits = 0;
    const std::size_t n = std::min<std::size_t>(3, bytes.size() - k);
    for (std::size_t j = 0; j < 3; ++j)
      bits = bits << 8 | (j < n ? static_cast<unsigned char>(bytes[k + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) out += j <= n ? kDigits[bits >> (18 - 6 * j) & 63] : '=';
  }
  return out;
}

std::string decode_base64(std::string_view text, const std::string& where) {
  static const auto values = [] {
    std::array<int, 256> v;
    v.fill(-1);
    for (std::size_t k = 0; k < 64; ++k) v[static_cast<unsigned char>(kDigits[k])] = static_cast<int>(k);
    return v;
  }();
  if (text.size() % 4 != 0)
    throw ContentsError("{}: base64 has {} characters; expected a multiple of 4", where, text.size());
  std::size_t digits = text.size();
  while (digits > 0 && text[digits - 1] == '=' && text.size() - digits < 2) --digits;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  u32 bits = 0;
  for (std::size_t k = 0; k < digits; ++k) {
    const int v = values[static_cast<unsigned char>(text[k])];
    if (v < 0)
      throw ContentsError("{}: character {} is not a base64 character (A-Z, a-z, 0-9, +, /)", where, k);
    bits = bits << 6 | static_cast<u32>(v);
    if (k % 4 == 1) out += static_cast<char>(bits >> 4);
    if (k % 4 == 2) out += static_cast<char>(bits >> 2);
    if (k % 4 == 3) out += static_cast<char>(bits);
  }
  return out;
}

}  // namespace redco
