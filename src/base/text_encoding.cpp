#include "base/text_encoding.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <set>

#include "base/log.h"

namespace redco {

std::string_view wide_encoding(std::string_view start) {
  using namespace std::string_view_literals;
  if (start.starts_with("\xFF\xFE\0\0"sv) || start.starts_with("\0\0\xFE\xFF"sv)) return "UTF-32";
  if (start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF")) return "UTF-16";
  const std::size_t n = std::min<std::size_t>(start.size(), 256) / 2 * 2;
  if (n < 8) return "";
  bool zero[2] = {true, true}, any_zero[2] = {false, false};  // of the bytes at even and odd positions
  for (std::size_t i = 0; i < n; ++i) {
    zero[i % 2] = zero[i % 2] && start[i] == '\0';
    any_zero[i % 2] = any_zero[i % 2] || start[i] == '\0';
  }
  if (zero[1] && !any_zero[0]) return "UTF-16LE";
  if (zero[0] && !any_zero[1]) return "UTF-16BE";
  return "";
}

std::string wide_encoding_error(std::string_view path, std::string_view encoding) {
  return fmt::format("{}: the file is {}, expected UTF-8. Convert it with: iconv -f {} -t UTF-8", path,
                     encoding, encoding);
}

void note_crlf(const std::string& path) {
  static std::mutex mutex;
  static std::set<std::string> noted;
  const std::lock_guard lock(mutex);
  if (noted.insert(path).second) info("{}: the lines end in CRLF; redco removes the carriage returns", path);
}

}  // namespace redco
