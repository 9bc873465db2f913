// YAML text as a tree that knows its lines. The YAML 1.2 core schema decides what a plain scalar is: `yes` is
// a text, 010 is ten, 3e-4 a number. Refused, because they hide mistakes or cost without bound: duplicate
// keys, keys that aren't plain words, tags, several documents, text that isn't UTF-8, alias bombs, deep
// nesting.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"

namespace redco {

// A point of a source: "job.yaml:12:3", or the whole of "override 'train.seed=1'" where line is 0.
struct Place {
  std::string source;
  int line = 0, column = 0;  // from 1; columns count characters
  std::string words() const;
  bool is_override() const { return line == 0; }
};

struct YamlNode {
  enum class Kind { null, scalar, list, map };
  Kind kind = Kind::null;
  std::string text;     // scalar: what is written, without quotes
  bool quoted = false;  // scalar: certainly a text
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

// Limits on what a job file may be: far above any sane one.
constexpr std::size_t kMaxYamlBytes = std::size_t{1} << 20;
constexpr int kMaxYamlNodes = 20000;
constexpr int kMaxYamlDepth = 64;

// Parses one document. Empty text is null. Throws UsageError with source, line and column.
YamlNode parse_yaml(const std::string& text, const std::string& source);

// Parses the value of an override; every place in it is `source` as a whole.
YamlNode parse_yaml_value(const std::string& text, const std::string& source);

// The value of a scalar or null by the core schema. Numbers too large to be held are texts.
SettingValue resolve(const YamlNode& node);

// The node as JSON text (", " and ": " as separators). Throws UsageError on .inf and .nan, which JSON lacks.
std::string to_json_text(const YamlNode& node);

// `over` laid onto `base`: maps key by key, all else replaced. A null map leaves `base` as it is.
void merge(YamlNode& base, const YamlNode& over, bool null_clears = false);

// "job.yaml", the text of a file. Throws UsageError for missing, unreadable or oversized files and folders.
std::string read_yaml_file(const std::string& path);

}  // namespace redco
