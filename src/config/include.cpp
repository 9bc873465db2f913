#include "config/include.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "config/paths.h"
#include "config/resolve.h"
#include "config/tree.h"

namespace redco {

namespace {

constexpr std::size_t kMaxFiles = 100;

// A name that is the same for all paths of one file.
std::string identity(const std::string& path) {
  std::error_code ec;
  const auto absolute = std::filesystem::weakly_canonical(path, ec);
  return ec ? path : absolute.string();
}

class Reader {
 public:
  std::vector<YamlText> texts;

  // `includer`: the place of the include: that names the file; "" for a file on the command line.
  void read(const std::string& path, const std::string& includer) {
    YamlText text{path, read_yaml_file(path), includer, true};
    open_.push_back(identity(path));
    for (const YamlNode& n : includes(text)) {
      const std::string where = fmt::format("{}:{}", n.place.source, n.place.line);
      const std::string file = file_of(n, path);
      if (std::find(open_.begin(), open_.end(), identity(file)) != open_.end())
        throw UsageError("{}: include: {} includes itself, directly or through other files", n.place.words(),
                         file);
      if (open_.size() > kMaxIncludeDepth)
        throw UsageError("{}: include: files are nested deeper than {} levels", n.place.words(),
                         kMaxIncludeDepth);
      if (texts.size() >= kMaxFiles)
        throw UsageError("{}: include: more than {} files", n.place.words(), kMaxFiles);
      if (!exists(file))
        throw UsageError("{}: include: {} does not exist; the path is relative to the folder of {}",
                         n.place.words(), file, path);
      read(file, includer.empty() ? where : fmt::format("{}, included from {}", where, includer));
    }
    open_.pop_back();
    texts.push_back(std::move(text));
  }

 private:
  // The values of the key include:. None if the text is not valid YAML, which load_settings() reports.
  static std::vector<YamlNode> includes(const YamlText& text) {
    YamlNode root;
    try {
      root = parse_yaml(text.text, text.name, text.includer);
    } catch (const UsageError&) {
      return {};
    }
    const YamlNode* n = root.find(kIncludeKey);
    if (!n || n->kind == YamlNode::Kind::null) return {};
    return n->kind == YamlNode::Kind::list ? n->list : std::vector<YamlNode>{*n};
  }

  static std::string file_of(const YamlNode& n, const std::string& includer) {
    const SettingValue v =
        n.kind == YamlNode::Kind::list || n.kind == YamlNode::Kind::map ? SettingValue() : resolve(n);
    const std::string* text = std::get_if<std::string>(&v);
    if (!text || text->empty())
      throw UsageError("{}: include: expected the path of a YAML file, or a list of paths", n.place.words());
    std::string path;
    try {
      path = expand_path(*text);
    } catch (const UsageError& e) {
      throw UsageError("{}: include: {}", n.place.words(), e.what());
    }
    return (std::filesystem::path(includer).parent_path() / path).lexically_normal().string();
  }

  std::vector<std::string> open_;  // the current file and its includers, outermost first
};

}  // namespace

std::vector<YamlText> read_yaml_files(const std::vector<std::string>& paths) {
  Reader reader;
  for (const std::string& p : paths) reader.read(p, "");
  return std::move(reader.texts);
}

}  // namespace redco
