// A tree of a YAML text with the line of each node. Plain scalars follow the YAML 1.2 core schema: `yes` is a
// text, 010 is ten, 3e-4 is a number. Errors, because they hide mistakes or have unbounded cost: duplicate
// keys, keys that are not plain words, tags, several documents, text that is not UTF-8, alias bombs, deep
// nesting.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"

namespace redco {

// A position in a source: "job.yaml:12:3", or "override 'train.seed=1'" if line is 0. In an included file:
// "base.yaml:12:3 (included from job.yaml:1)".
struct Place {
  std::string source;
  int line = 0, column = 0;  // from 1; columns count characters
  std::string includer;      // "job.yaml:1"
  std::string words() const;
  bool is_override() const { return line == 0; }
};

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;     // scalar: its text, without quotes
  bool quoted = false;  // scalar: always a text, never a number
  Place place;
  std::vector<YamlNode> list;
  struct Entry;
  std::vector<Entry> map;  // in order of appearance; keys are unique

  YamlNode* find(const std::string& key);
};
struct YamlNode::Entry {
  std::string key;
  Place place;  // of the key
  YamlNode value;
};

// Limits of a job file, far above any real one.
constexpr std::size_t kMaxYamlBytes = std::size_t{1} << 20;
constexpr int kMaxYamlNodes = 20000;
constexpr int kMaxYamlDepth = 64;

// Parses one document. Empty text is null. `includer`: see Place. Throws UsageError with source, line and
// column.
YamlNode parse_yaml(const std::string& text, const std::string& source, const std::string& includer = "");

// Parses the value of an override; the place of every node is `source`, without a line.
YamlNode parse_yaml_value(const std::string& text, const std::string& source);

// Merges `over` into `base`: maps key by key; other values are replaced. A null does not replace a map of
// `base` unless null_clears.
void merge(YamlNode& base, const YamlNode& over, bool null_clears = false);

// The top-level key that names further files (read_yaml_files()).
constexpr const char* kIncludeKey = "include";

// The text of the file. Throws UsageError for missing, unreadable or oversized files and folders.
std::string read_yaml_file(const std::string& path);

}  // namespace redco
