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

}  // namespace

std::string expand_path(const std::string& path) { return path.empty() ? path : expand(path).path; }

std::vector<std::string> expand_files(const std::string& path) {
  if (path.empty()) return {path};
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
