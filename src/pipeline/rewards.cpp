#include "pipeline/rewards.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>

#include "base/error.h"
#include "base/types.h"

namespace redco {

namespace {

std::string_view trimmed(std::string_view s) {
  constexpr std::string_view kSpace = " \n\t\r";
  const auto first = s.find_first_not_of(kSpace);
  return first == std::string_view::npos ? "" : s.substr(first, s.find_last_not_of(kSpace) - first + 1);
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// A decimal number without rounding: +- 0.DIGITS x 10^exponent. Digits neither begin nor end with 0; zero has
// none, and no sign.
struct Decimal {
  bool negative = false;
  std::string digits;
  i64 exponent = 0;
  bool operator==(const Decimal&) const = default;
};

// The end of the digits that begin at `at`.
std::size_t end_of_digits(std::string_view s, std::size_t at) {
  while (at < s.size() && is_digit(s[at])) ++at;
  return at;
}

// The end of a group of thousands at `at`, ",123" and no further digit; `at` if there is none.
std::size_t end_of_thousands(std::string_view s, std::size_t at) {
  return at < s.size() && s[at] == ',' && end_of_digits(s, at + 1) == at + 4 ? at + 4 : at;
}

// Whether the number that begins at `first` is negative. A hyphen between two words or digits is no sign
// ("40-42", "GPT-4"); a currency may follow a sign ("-$5").
bool has_minus(std::string_view s, std::size_t first) {
  std::string_view before = s.substr(0, first);
  for (const std::string_view currency : {"$", "\xE2\x82\xAC", "\xC2\xA3", "\xC2\xA5"})
    if (before.ends_with(currency)) {
      before.remove_suffix(currency.size());
      break;
    }
  if (before.ends_with("\xE2\x88\x92")) return true;  // the minus sign U+2212
  if (!before.ends_with('-')) return false;
  before.remove_suffix(1);
  return before.empty() || !(is_word(before.back()) || before.back() == ')' || before.back() == '-');
}

// Reads the number whose first character is at `at`, a digit or a point before one, and moves `at` behind it.
Decimal read_decimal(std::string_view s, std::size_t& at) {
  Decimal d;
  d.negative = has_minus(s, at);
  std::size_t end = end_of_digits(s, at);
  d.digits = s.substr(at, end - at);
  if (!d.digits.empty() && d.digits.size() <= 3 && d.digits[0] != '0')
    for (std::size_t next; (next = end_of_thousands(s, end)) != end; end = next)
      d.digits += s.substr(end + 1, 3);
  d.exponent = static_cast<i64>(d.digits.size());
  if (end + 1 < s.size() && s[end] == '.' && is_digit(s[end + 1])) {
    const std::size_t begin = end + 1;
    end = end_of_digits(s, begin);
    d.digits += s.substr(begin, end - begin);
  }
  // "1e3", but not "1e" or "3e4x"
  if (end < s.size() && (s[end] == 'e' || s[end] == 'E')) {
    const std::size_t sign = end + 1 < s.size() && (s[end + 1] == '+' || s[end + 1] == '-') ? 1 : 0;
    const std::size_t begin = end + 1 + sign, stop = end_of_digits(s, begin);
    i64 shift = 0;
    if (stop > begin && stop - begin <= 9 && (stop == s.size() || !is_word(s[stop]))) {
      std::from_chars(s.data() + begin, s.data() + stop, shift);
      d.exponent += sign && s[end + 1] == '-' ? -shift : shift;
      end = stop;
    }
  }
  at = end;
  const std::size_t first = d.digits.find_first_not_of('0');
  if (first == std::string::npos) return {};
  d.exponent -= static_cast<i64>(first);
  d.digits = d.digits.substr(first, d.digits.find_last_not_of('0') - first + 1);
  return d;
}

// "it is -12.5." has -12.5, "is...42" has 42, "1,234" and "1.234e3" have 1234.
std::optional<Decimal> last_number(std::string_view s) {
  std::optional<Decimal> last;
  for (std::size_t at = 0; at < s.size();) {
    // ".5" is a number if no digit or point comes before its point.
    const bool point = s[at] == '.' && at + 1 < s.size() && is_digit(s[at + 1]) &&
                       (at == 0 || (s[at - 1] != '.' && !is_word(s[at - 1])));
    if (point || is_digit(s[at]))
      last = read_decimal(s, at);
    else
      ++at;
  }
  return last;
}

}  // namespace

double verified_reward(std::string_view kind, const std::string& answer, const std::string& expected) {
  if (kind == "exact_match") return trimmed(answer) == trimmed(expected) ? 1 : 0;
  if (kind == "contains") return answer.find(trimmed(expected)) != std::string::npos ? 1 : 0;
  REDCO_CHECK(kind == "number", "no reward is called '{}'", kind);
  const auto mine = last_number(answer);
  return mine && mine == last_number(expected) ? 1 : 0;
}

std::vector<double> group_advantages(const std::vector<double>& rewards, bool scaled) {
  // The mean of equal numbers may round to another one.
  if (std::ranges::adjacent_find(rewards, std::ranges::not_equal_to()) == rewards.end())
    return std::vector<double>(rewards.size(), 0);
  const double n = static_cast<double>(rewards.size());
  double mean = 0, variance = 0;
  for (const double r : rewards) mean += r / n;
  for (const double r : rewards) variance += (r - mean) * (r - mean) / std::max(1., n - 1);
  const double unit = scaled ? std::sqrt(variance) + 1e-4 : 1;
  std::vector<double> out;
  for (const double r : rewards) out.push_back((r - mean) / unit);
  return out;
}

}  // namespace redco
