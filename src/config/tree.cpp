#include "config/tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "base/error.h"
#include "base/text_encoding.h"
#include "base/utf8.h"
#include "base/words.h"

namespace redco {

namespace {

// The lines of a text. Converts yaml-cpp's columns, which count bytes, to characters.
class Lines {
 public:
  Lines(const std::string& text, std::string includer) : text_(text), includer_(std::move(includer)) {
    starts_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') starts_.push_back(i + 1);
    }
  }

  // yaml-cpp counts both from 0.
  Place place(const std::string& source, int line, int column) const {
    Place p{source, std::max(line, 0) + 1, 1, includer_};
    if (line < 0 || static_cast<std::size_t>(line) >= starts_.size()) return p;
    const std::size_t from = starts_[static_cast<std::size_t>(line)];
    for (std::size_t i = from;
         i < std::min(from + static_cast<std::size_t>(std::max(column, 0)), text_.size()); ++i) {
      if ((static_cast<unsigned char>(text_[i]) & 0xC0) != 0x80) ++p.column;
    }
    return p;
  }

  Place place_of(const std::string& source, std::size_t offset) const {
    const auto after = std::upper_bound(starts_.begin(), starts_.end(), offset);
    const auto line = static_cast<std::size_t>(after - starts_.begin()) - 1;
    return place(source, static_cast<int>(line), static_cast<int>(offset - starts_[line]));
  }

  // Whether a quote that opens at this place, after an anchor or tag, is never closed. yaml-cpp accepts that
  // and takes the rest of the file as its text.
  bool open_quote(int line, int column) const {
    if (line < 0 || static_cast<std::size_t>(line) >= starts_.size()) return false;
    std::size_t i = starts_[static_cast<std::size_t>(line)] + static_cast<std::size_t>(std::max(column, 0));
    while (i < text_.size() && (text_[i] == '&' || text_[i] == '!')) {
      i = std::min(text_.find_first_of(" \t\r\n", i), text_.size());
      i = std::min(text_.find_first_not_of(" \t\r\n", i), text_.size());
    }
    if (i >= text_.size() || (text_[i] != '\'' && text_[i] != '"')) return false;
    const char quote = text_[i];
    for (++i; i < text_.size(); ++i) {
      if (quote == '"' && text_[i] == '\\') {
        ++i;
      } else if (text_[i] == quote) {
        if (quote == '"' || i + 1 >= text_.size() || text_[i + 1] != quote) return false;
        ++i;
      }
    }
    return true;
  }

  // The first line up to `line` (from 1) that is indented by a tab, or 0.
  int tab_up_to(int line) const {
    for (int l = std::max(1, line - 1); l <= line && static_cast<std::size_t>(l) <= starts_.size(); ++l) {
      std::size_t i = starts_[static_cast<std::size_t>(l - 1)];
      while (i < text_.size() && text_[i] == ' ') ++i;
      if (i < text_.size() && text_[i] == '\t') return l;
    }
    return 0;
  }

 private:
  const std::string& text_;
  std::string includer_;
  std::vector<std::size_t> starts_;
};

// Builds the tree from yaml-cpp's events.
class Builder : public YAML::EventHandler {
 public:
  Builder(const std::string& source, const Lines& lines) : source_(source), lines_(lines) {}

  YamlNode root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& m, YAML::anchor_t anchor) override {
    YamlNode n;
    n.place = at(m);
    add(std::move(n), anchor);
  }
  void OnScalar(const YAML::Mark& m, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    YamlNode n;
    n.place = at(m);
    n.kind = YamlNode::Kind::scalar;
    n.text = value;
    n.quoted = tag == "!";
    if (n.quoted && lines_.open_quote(m.line, m.column))
      fail(n.place, "the quote that opens here is never closed");
    check_tag(tag, n.place);
    add(std::move(n), anchor);
  }
  void OnAlias(const YAML::Mark& m, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end()) fail(at(m), "an alias refers to the anchor that contains it; remove it");
    YamlNode copy = it->second;
    copy.place = at(m);
    nodes_ += count(copy);
    depth_check(depth_of(copy) + static_cast<int>(open_.size()), m);
    add(std::move(copy), 0);
  }
  void OnSequenceStart(const YAML::Mark& m, const std::string& tag, YAML::anchor_t a,
                       YAML::EmitterStyle::value) override {
    start(YamlNode::Kind::list, m, tag, a);
  }
  void OnMapStart(const YAML::Mark& m, const std::string& tag, YAML::anchor_t a,
                  YAML::EmitterStyle::value) override {
    start(YamlNode::Kind::map, m, tag, a);
  }
  void OnSequenceEnd() override { end(); }
  void OnMapEnd() override { end(); }

 private:
  struct Open {
    YamlNode node;
    YAML::anchor_t anchor;
    std::optional<YamlNode> key;  // map: the key whose value comes next
  };

  Place at(const YAML::Mark& m) const { return lines_.place(source_, m.line, m.column); }

  [[noreturn]] void fail(const Place& p, const std::string& what) const {
    throw UsageError("{}: {}", p.words(), what);
  }

  void check_tag(const std::string& tag, const Place& p) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      fail(p, fmt::format("the tag {} is not supported; remove it", excerpt(tag)));
  }

  void depth_check(int depth, const YAML::Mark& m) const {
    if (depth > kMaxYamlDepth)
      fail(at(m), fmt::format("the values are nested deeper than {} levels", kMaxYamlDepth));
  }

  // Number of nodes of the tree n; a long text counts as several.
  static std::size_t count(const YamlNode& n) {
    std::size_t c = 1 + n.text.size() / 256;
    for (const YamlNode& e : n.list) c += count(e);
    for (const YamlNode::Entry& e : n.map) c += 1 + e.key.size() / 256 + count(e.value);
    return c;
  }
  static int depth_of(const YamlNode& n) {
    int d = 0;
    for (const YamlNode& e : n.list) d = std::max(d, depth_of(e));
    for (const YamlNode::Entry& e : n.map) d = std::max(d, depth_of(e.value));
    return d + 1;
  }

  void start(YamlNode::Kind kind, const YAML::Mark& m, const std::string& tag, YAML::anchor_t anchor) {
    depth_check(static_cast<int>(open_.size()) + 1, m);
    check_tag(tag, at(m));
    Open& o = open_.emplace_back();
    o.node.kind = kind;
    o.node.place = at(m);
    o.anchor = anchor;
  }

  void end() {
    Open o = std::move(open_.back());
    open_.pop_back();
    add(std::move(o.node), o.anchor);
  }

  void add(YamlNode n, YAML::anchor_t anchor) {
    if (++nodes_ > kMaxYamlNodes) {
      fail(n.place,
           fmt::format("more than {} values with aliases expanded; this is not a job file", kMaxYamlNodes));
    }
    if (anchor) anchors_.emplace(anchor, n);
    if (open_.empty()) {
      root = std::move(n);
      return;
    }
    Open& o = open_.back();
    if (o.node.kind == YamlNode::Kind::list) {
      o.node.list.push_back(std::move(n));
    } else if (!o.key) {
      if (n.kind != YamlNode::Kind::scalar || n.text.empty()) fail(n.place, "expected a name as key");
      if (n.text == "<<" && !n.quoted)
        fail(n.place, "merge keys (<<) are not supported; write the keys, or use include:");
      if (YamlNode* before = o.node.find(n.text)) {
        fail(n.place, fmt::format("duplicate key '{}', first given at {}; remove one", excerpt(n.text),
                                  before->place.words()));
      }
      o.key = std::move(n);
    } else {
      // yaml-cpp gives an empty value no place.
      if (n.kind == YamlNode::Kind::null) n.place = o.key->place;
      o.node.map.push_back({o.key->text, o.key->place, std::move(n)});
      o.key.reset();
    }
  }

  std::string source_;
  const Lines& lines_;
  std::vector<Open> open_;
  std::unordered_map<YAML::anchor_t, YamlNode> anchors_;
  std::size_t nodes_ = 0;
};

// What to look for, in place of yaml-cpp's terms.
std::string in_words(const std::string& message) {
  const std::pair<const char*, const char*> known[] = {
      {"illegal flow end", "this bracket does not match the last open one"},
      {"illegal map value", "a second `: ` in one line; put a text with `: ` in quotes"},
      {"end of sequence flow not found", "a [ is not closed by ]"},
      {"end of map flow not found", "a { is not closed by }"},
      {"end of map not found", "this line's indentation fits no line above it, or a key has no `:`"},
      {"end of sequence not found", "this line's indentation fits no list above it, or its - is missing"},
      {"illegal block entry", "a list item (`- `) is not allowed here; check the indentation"},
      {"the referenced anchor is not defined",
       "an alias (*NAME) without its anchor; put a text with * in quotes"},
  };
  for (const auto& [theirs, ours] : known)
    if (message.starts_with(theirs)) return ours;
  return message + "; check brackets, quotes and indentation";
}

void relocate(YamlNode& n, const std::string& source) {
  n.place = {source};
  for (YamlNode& e : n.list) relocate(e, source);
  for (YamlNode::Entry& e : n.map) {
    e.place = {source};
    relocate(e.value, source);
  }
}

}  // namespace

std::string Place::words() const {
  if (line == 0) return source;
  return fmt::format("{}:{}:{}{}", source, line, column,
                     includer.empty() ? "" : fmt::format(" (included from {})", includer));
}

YamlNode* YamlNode::find(const std::string& key) {
  for (Entry& e : map) {
    if (e.key == key) return &e.value;
  }
  return nullptr;
}

YamlNode parse_yaml(const std::string& whole, const std::string& source, const std::string& includer) {
  if (const auto encoding = wide_encoding(whole); !encoding.empty())
    throw UsageError("{}", wide_encoding_error(source, encoding));
  // yaml-cpp does not count a byte order mark in its columns either.
  const std::string text = whole.starts_with(kByteOrderMark) ? whole.substr(kByteOrderMark.size()) : whole;
  const Lines lines(text, includer);
  if (text.size() > kMaxYamlBytes) {
    throw UsageError("{}: the file has {}; a job file has at most {}", source, human_bytes(text.size()),
                     human_bytes(kMaxYamlBytes));
  }
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string::npos) {
    throw UsageError("{}: not UTF-8 text (byte 0x{:02x}); save the file as UTF-8",
                     lines.place_of(source, bad).words(), static_cast<unsigned char>(text[bad]));
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
      throw UsageError("{}: control character 0x{:02x}; expected a YAML text file",
                       lines.place_of(source, i).words(), c);
    }
  }
  std::istringstream in(text);
  Builder builder(source, lines);
  try {
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) return YamlNode{.place = {source, 1, 1, includer}};
    Builder second(source, lines);
    if (parser.HandleNextDocument(second)) {
      throw UsageError("{}: a second YAML document begins here; put it into a separate file",
                       second.root.place.words());
    }
  } catch (const YAML::Exception& e) {
    const Place p = lines.place(source, e.mark.line, e.mark.column);
    if (const int tab = lines.tab_up_to(p.line)) {
      throw UsageError("{}: the line is indented with a tab; use spaces",
                       lines.place(source, tab - 1, 0).words());
    }
    throw UsageError("{}: not valid YAML: {}{}", p.words(), in_words(e.msg),
                     source.ends_with(".py")
                         ? ". A Python file is the pipeline of a job (pipeline: ./mine.py), or "
                           "a script for `redco run`"
                         : "");
  }
  return std::move(builder.root);
}

YamlNode parse_yaml_value(const std::string& text, const std::string& source) {
  YamlNode n;
  try {
    n = parse_yaml(text, source);
  } catch (const UsageError& e) {
    // The line and column inside an override would not help.
    const std::string what = e.what();
    const auto colon = what.find(": ", source.size());
    throw UsageError("{}: the value is{}", source,
                     colon == std::string::npos ? what : what.substr(colon + 1));
  }
  relocate(n, source);
  return n;
}

void merge(YamlNode& base, const YamlNode& over, bool null_clears) {
  if (base.kind == YamlNode::Kind::map && over.kind == YamlNode::Kind::map) {
    for (const YamlNode::Entry& e : over.map) {
      if (YamlNode* mine = base.find(e.key)) {
        merge(*mine, e.value, null_clears);
      } else {
        base.map.push_back(e);
      }
    }
  } else if (null_clears || base.kind != YamlNode::Kind::map || over.kind != YamlNode::Kind::null) {
    base = over;
  }
}

namespace {

// The YAML file in the path's folder whose name is the most similar.
std::string similar_file(const std::string& path) {
  const std::filesystem::path given(path);
  std::vector<std::string> names;
  std::error_code ec;
  const auto folder = given.has_parent_path() ? given.parent_path() : std::filesystem::path(".");
  for (std::filesystem::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    if (const auto extension = it->path().extension(); extension == ".yaml" || extension == ".yml")
      names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  const std::string name = given.filename().string();
  std::string near = nearest(name, names);
  if (near.empty()) near = nearest(name + ".yaml", names);
  return near.empty() ? "" : (given.parent_path() / near).string();
}

}  // namespace

std::string read_yaml_file(const std::string& path) {
  std::error_code ec;
  const auto status = std::filesystem::status(path, ec);
  if (!std::filesystem::exists(status)) {
    const std::string near = similar_file(path);
    throw UsageError("job file '{}' does not exist; {}", path,
                     near.empty() ? "check the path; `redco ls` lists example jobs"
                                  : fmt::format("did you mean {}?", near));
  }
  if (std::filesystem::is_directory(status) && std::filesystem::exists(path + "/config.json"))
    throw UsageError("job file '{0}' is the folder of a model; give it as model.path={0}", path);
  if (std::filesystem::is_directory(status))
    throw UsageError("job file '{0}' is a folder; expected a YAML file (workdir={0} names a run's folder)",
                     path);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError("job file '{}' cannot be opened: {}", path, std::strerror(errno));
  // Reads one byte more than allowed, so that parse_yaml() detects a file that is too large.
  std::string text(kMaxYamlBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (in.bad()) throw UsageError("job file '{}' cannot be read: {}", path, std::strerror(errno));
  return text;
}

}  // namespace redco
