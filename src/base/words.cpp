#include "base/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/utf8.h"

namespace redco {

namespace {

// Formats x in [0, 1000) with three significant digits: 1.50, 31.9, 512.
std::string three_digits(double x) {
  return x < 9.995   ? fmt::format("{:.2f}", x)
         : x < 99.95 ? fmt::format("{:.1f}", x)
                     : fmt::format("{:.0f}", x);
}

}  // namespace

std::string human_bytes(u64 bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const char* units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double x = static_cast<double>(bytes) / 1024;
  int u = 0;
  // 1023.5 would be rounded to 1024.
  while (x >= 1023.5 && u < 5) x /= 1024, ++u;
  return fmt::format("{} {}", three_digits(x), units[u]);
}

u64 parse_bytes(std::string_view text) {
  const char* expected = "a size such as 32GiB, 512 MiB or 1.5 GB";
  std::string_view s = text;
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  while (!s.empty() && s.back() == ' ') s.remove_suffix(1);
  double x = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), x, std::chars_format::fixed);
  if (error != std::errc() || !std::isfinite(x) || x < 0) {
    throw UsageError("expected {}, got '{}'", expected, text);
  }
  s.remove_prefix(static_cast<std::size_t>(end - s.data()));
  while (!s.empty() && s.front() == ' ') s.remove_prefix(1);
  const std::string_view letters = "kMGTP";
  double scale = 1;
  if (!s.empty() && s != "B") {
    const char first = s.front() == 'K' ? 'k' : s.front();
    const auto power = letters.find(first);
    const std::string_view tail = s.substr(1);
    if (power == std::string_view::npos || (tail != "iB" && tail != "B" && tail != "i" && !tail.empty())) {
      throw UsageError("expected {}, got '{}': unknown unit '{}'", expected, text, s);
    }
    const bool binary = tail == "iB" || tail == "i";
    scale = std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
  }
  x *= scale;
  if (x >= 0x1p63) throw UsageError("expected {} below 8 EiB, got '{}'", expected, text);
  return static_cast<u64>(std::llround(x));
}

std::string human_duration(double seconds) {
  if (!std::isfinite(seconds) || seconds < 0) return "?";
  if (seconds > 0 && seconds < 0.0995) return fmt::format("{:.3g} ms", 1e3 * seconds);
  if (seconds < 9.995) return fmt::format("{:.2f} s", seconds);
  if (seconds < 59.95) return fmt::format("{:.1f} s", seconds);
  if (seconds >= 1e9) return "> 30 years";
  const i64 s = std::llround(seconds);
  if (s < 3600) return fmt::format("{} min {:02} s", s / 60, s % 60);
  const i64 m = s / 60;
  if (m < 24 * 60) return fmt::format("{} h {:02} min", m / 60, m % 60);
  return fmt::format("{} d {:02} h", m / (24 * 60), m / 60 % 24);
}

std::string human_number(double v) {
  const double size = std::fabs(v);
  if (v == 0) return "0";
  if (!std::isfinite(v) || size < 1e-3 || size >= 1e9) return fmt::format("{:.4g}", v);
  return fmt::format("{:.{}f}", v, std::max(0, 3 - static_cast<int>(std::floor(std::log10(size)))));
}

std::string human_percent(double share) { return fmt::format("{:.0f}%", 100 * share); }

std::string counted(i64 n, std::string_view thing) {
  const bool es =
      thing.ends_with('s') || thing.ends_with('x') || thing.ends_with("ch") || thing.ends_with("sh");
  return fmt::format("{} {}{}", n, thing, n == 1 ? "" : es ? "es" : "s");
}

std::string human_count(double n) {
  if (!std::isfinite(n)) return fmt::format("{}", n);
  if (n < 0) return "-" + human_count(-n);
  if (n < 999.5) return n == std::floor(n) ? fmt::format("{:.0f}", n) : three_digits(n);
  const char* units[] = {"k", "M", "G", "T", "P", "E"};
  double x = n / 1000;
  int u = 0;
  while (x >= 999.5 && u < 5) x /= 1000, ++u;
  return fmt::format("{} {}", three_digits(x), units[u]);
}

int edit_distance(std::string_view a, std::string_view b, int limit) {
  const std::size_t n = a.size(), m = b.size();
  if ((n > m ? n - m : m - n) > static_cast<std::size_t>(limit)) return limit + 1;
  // Rows i-2, i-1 and i of the (n+1) x (m+1) table.
  std::vector<int> before(m + 1), last(m + 1), row(m + 1);
  for (std::size_t j = 0; j <= m; ++j) last[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= n; ++i) {
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= m; ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, row);
  }
  return std::min(last[m], limit + 1);
}

std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  int best = std::max<int>(1, static_cast<int>(name.size() / 3)) + 1;
  std::string found;
  for (const std::string& n : names) {
    const int d = edit_distance(name, n, best);
    if (d < best && d < static_cast<int>(std::max(name.size(), n.size()))) best = d, found = n;
  }
  return found;
}

std::string excerpt(std::string_view text, std::size_t most) {
  std::string s(text.substr(0, most));
  // Cut between characters: at most three bytes of an incomplete character can remain.
  for (int i = 0; i < 3 && s.size() < text.size() && !is_utf8(s); ++i) s.pop_back();
  const bool cut = s.size() < text.size();
  std::replace_if(
      s.begin(), s.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; }, ' ');
  return cut ? s + "..." : s;
}

std::string shell_quote(std::string_view word) {
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-_./=:,+@%").find(static_cast<char>(c)) != std::string_view::npos;
  });
  if (plain) return std::string(word);
  std::string quoted = "'";
  for (char c : word) {
    if (c == '\0')
      throw UsageError("a word of a shell command has a zero byte: {}; remove the byte", excerpt(word));
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

}  // namespace redco
