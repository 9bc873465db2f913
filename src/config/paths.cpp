#include "config/paths.h"

#include <glob.h>

#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr const char* kWild = "*?[";

// The path, and the same path as a glob pattern, in which inserted values are escaped.
struct Expanded {
  std::string path, pattern;
  void typed(char c) { path += c, pattern += c; }
  void value(const std::string& text) {
    path += text;
    for (const char c : text) {
      if (std::string_view("*?[\\").find(c) != std::string_view::npos) pattern += '\\';
      pattern += c;
    }
  }
};

bool is_name(char c, bool first) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

std::string variable(const std::string& name, const std::string& path) {
  if (const char* value = std::getenv(name.c_str())) return value;
  throw UsageError(
      "'{}': the environment variable {} is not set; set it (export {}=FOLDER) or write the path",
      excerpt(path), name, name);
}

Expanded expand(const std::string& path) {
  Expanded out;
  std::size_t i = 0;
  if (path[0] == '~') {
    const std::size_t end = std::min(path.find('/'), path.size());
    if (end != 1)
      throw UsageError(
          "'{}': only ~/ is expanded, to your home folder; write the whole path, or ./{} for a file of this "
          "name",
          excerpt(path), excerpt(path));
    out.value(variable("HOME", path));
    i = 1;
  }
  while (i < path.size()) {
    const char next = i + 1 < path.size() ? path[i + 1] : '\0';
    if (path[i] == '$' && next == '$') {
      out.value("$");
      i += 2;
    } else if (path[i] == '$' && (next == '{' || is_name(next, true))) {
      const std::size_t from = next == '{' ? i + 2 : i + 1;
      std::size_t to = from;
      while (to < path.size() && is_name(path[to], to == from)) ++to;
      if (next == '{' && (to == from || to == path.size() || path[to] != '}'))
        throw UsageError("'{}': expected ${{NAME}} with a closing brace; write $$ for a dollar sign",
                         excerpt(path));
      out.value(variable(path.substr(from, to - from), path));
      i = next == '{' ? to + 1 : to;
    } else {
      out.typed(path[i++]);
    }
  }
  return out;
}

// The names of a range of numbers in braces, as the shards of web data sets are given: x-{000..002}.tar. The
// width is that of the first number. Other braces stay.
std::vector<std::string> expand_range(const std::string& path) {
  const auto digits = [&](std::size_t at) {
    std::size_t end = at;
    while (end < path.size() && path[end] >= '0' && path[end] <= '9') ++end;
    return end;
  };
  for (std::size_t open = path.find('{'); open != std::string::npos; open = path.find('{', open + 1)) {
    const std::size_t first_end = digits(open + 1);
    if (first_end == open + 1 || first_end - open > 10 || path.compare(first_end, 2, "..") != 0) continue;
    const std::size_t last_end = digits(first_end + 2);
    if (last_end == first_end + 2 || last_end - first_end > 11 || last_end == path.size() ||
        path[last_end] != '}')
      continue;
    const std::string width = path.substr(open + 1, first_end - open - 1);
    const long first = std::stol(width),
               last = std::stol(path.substr(first_end + 2, last_end - first_end - 2));
    constexpr long kMost = 100'000;
    if (last < first || last - first >= kMost)
      throw UsageError("'{}': expected a range of at most {} files in braces, the smaller number first",
                       excerpt(path), kMost);
    std::vector<std::string> out;
    for (long n = first; n <= last; ++n) {
      std::string number = std::to_string(n);
      if (number.size() < width.size()) number.insert(0, width.size() - number.size(), '0');
      for (std::string& rest : expand_range(path.substr(last_end + 1)))
        out.push_back(path.substr(0, open) + number + rest);
    }
    return out;
  }
  return {path};
}

}  // namespace

std::string expand_path(const std::string& path) { return path.empty() ? path : expand(path).path; }

std::vector<std::string> expand_files(const std::string& path) {
  if (path.empty()) return {path};
  if (!exists(expand(path).path))
    if (const auto range = expand_range(path); range.size() > 1 || range[0] != path) {
      std::vector<std::string> files;
      for (const std::string& one : range)
        for (std::string& file : expand_files(one)) files.push_back(std::move(file));
      return files;
    }
  const Expanded e = expand(path);
  if (path.find_first_of(kWild) == std::string::npos || exists(e.path)) return {e.path};
  glob_t found{};
  const int rc = ::glob(e.pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<std::string> files;
  for (std::size_t i = 0; rc == 0 && i < found.gl_pathc; ++i) files.emplace_back(found.gl_pathv[i]);
  ::globfree(&found);
  if (rc != 0 && rc != GLOB_NOMATCH) throw IoError("'{}': reading the folders failed", excerpt(path));
  if (files.empty())
    throw UsageError("'{}' matches no file; check the folder and the pattern", excerpt(path));
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace redco
