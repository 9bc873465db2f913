// The pages of the documentation, for the tests that read them.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

namespace redco::test {

inline std::string page_text(const std::filesystem::path& path) {
  std::stringstream s;
  s << std::ifstream(path).rdbuf();
  EXPECT_FALSE(s.str().empty()) << path;
  return s.str();
}

// README.md, CONTRIBUTING.md, CHANGELOG.md, and every page below docs.
inline std::vector<std::filesystem::path> documentation() {
  const std::filesystem::path root = REDCO_SOURCE_DIR;
  std::vector<std::filesystem::path> out = {root / "README.md", root / "CONTRIBUTING.md",
                                            root / "CHANGELOG.md"};
  for (const auto& e : std::filesystem::recursive_directory_iterator(root / "docs"))
    if (e.path().extension() == ".md") out.push_back(e.path());
  return out;
}

// `text` without its blocks between lines of ```.
inline std::string without_fences(const std::string& text) {
  std::string out;
  bool code = false;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```"))
      code = !code;
    else if (!code)
      out += line + "\n";
  }
  return out;
}

}  // namespace redco::test
