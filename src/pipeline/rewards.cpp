#include "pipeline/rewards.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"

namespace redco {

namespace {

std::string_view trimmed(std::string_view s) {
  constexpr std::string_view kSpace = " \n\t\r";
  const auto first = s.find_first_not_of(kSpace);
  return first == std::string_view::npos ? "" : s.substr(first, s.find_last_not_of(kSpace) - first + 1);
}

// "it is -12.5." has -12.5. A point belongs to a number only before a digit.
std::optional<double> last_number(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  const auto last = text.find_last_of(kDigits);
  if (last == std::string_view::npos) return std::nullopt;
  auto first = last;
  while (first > 0 && (kDigits.find(text[first - 1]) != std::string_view::npos || text[first - 1] == '.'))
    --first;
  if (first > 0 && text[first - 1] == '-') --first;
  double value = 0;
  std::from_chars(text.data() + first, text.data() + last + 1, value);
  return value;
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
