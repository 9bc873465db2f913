#include "tokenizers/load/hf_number.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include "base/types.h"

namespace redco {
namespace {

// The f64 nearest to 10^k, 0 <= k <= 308.
double power_of_ten(int k) {
  const std::string text = "1e" + std::to_string(k);
  double v = 0;
  std::from_chars(text.data(), text.data() + text.size(), v);
  return v;
}

}  // namespace

double hf_number(std::string_view number) {
  const char* p = number.data();
  const char* end = p + number.size();
  const bool negative = p < end && *p == '-';
  p += negative;
  u64 digits = 0;
  i64 exponent = 0;
  bool full = false;  // the digits no longer fit into 64 bits: this and all later digits are dropped
  auto take = [&] {
    const auto d = static_cast<u64>(*p - '0');
    full = full || digits > (std::numeric_limits<u64>::max() - d) / 10;
    if (!full) digits = digits * 10 + d;
    return !full;
  };
  auto is_digit = [&] { return p < end && *p >= '0' && *p <= '9'; };
  for (; is_digit(); ++p) exponent += take() ? 0 : 1;
  if (p < end && *p == '.') {
    // Digits after the point are kept as long as they fit, even if digits before it were dropped.
    full = false;
    for (++p; is_digit(); ++p) exponent -= take() ? 1 : 0;
  }
  if (p < end && (*p == 'e' || *p == 'E')) {
    ++p;
    const bool down = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) ++p;
    i64 e = 0;
    for (; is_digit(); ++p) e = std::min(e * 10 + (*p - '0'), i64{1} << 40);
    exponent += down ? -e : e;
  }
  static constexpr int kLargest = 308;
  auto v = static_cast<double>(digits);
  while (v != 0 && exponent < -kLargest) {
    v /= 1e308;
    exponent += kLargest;
  }
  if (v != 0 && exponent > kLargest) v = std::numeric_limits<double>::infinity();
  if (v != 0 && exponent <= kLargest)
    v = exponent < 0 ? v / power_of_ten(static_cast<int>(-exponent))
                     : v * power_of_ten(static_cast<int>(exponent));
  return negative ? -v : v;
}

}  // namespace redco
