// Job files and the files that they include.
#pragma once

#include <string>
#include <vector>

namespace redco {

// A YAML text and its name in messages, usually its path.
struct YamlText {
  std::string name, text;
  std::string includer;  // the place of the include: that names this file, "job.yaml:1"
  bool is_file = false;  // read by read_yaml_files(): its include: was followed and is no setting
};

// Reads the files and the files that they include (top-level key include:, paths relative to the including
// file). Order: later texts win, so a file comes after the files that it includes. UsageError if a file is
// missing, a folder, unreadable or over 1 MiB, and if includes form a cycle or are nested deeper than
// kMaxIncludeDepth.
constexpr int kMaxIncludeDepth = 16;
std::vector<YamlText> read_yaml_files(const std::vector<std::string>& paths);

}  // namespace redco
