#include "config/tree.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

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

// Lines of a text, to turn yaml-cpp's byte columns into characters.
class Lines {
 public:
  explicit Lines(const std::string& text) : text_(text) {
    starts_.push_back(0);
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') starts_.push_back(i + 1);
    }
  }

  // yaml-cpp counts both from 0.
  Place place(const std::string& source, int line, int column) const {
    Place p{source, std::max(line, 0) + 1, 1};
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

  // Whether a quote that opens at this place, after an anchor or tag, is never closed. yaml-cpp lets that
  // pass, and the text swallows the rest of the file.
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
    if (it == anchors_.end()) fail(at(m), "an alias inside its own anchor");
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
    std::optional<YamlNode> key;  // of a map: read, its value not yet
  };

  Place at(const YAML::Mark& m) const { return lines_.place(source_, m.line, m.column); }

  [[noreturn]] void fail(const Place& p, const std::string& what) const {
    throw UsageError("{}: {}", p.words(), what);
  }

  void check_tag(const std::string& tag, const Place& p) const {
    if (!tag.empty() && tag != "?" && tag != "!")
      fail(p, fmt::format("the tag {} is not used here; remove it", excerpt(tag)));
  }

  void depth_check(int depth, const YAML::Mark& m) const {
    if (depth > kMaxYamlDepth) fail(at(m), fmt::format("nested deeper than {} levels", kMaxYamlDepth));
  }

  // Nodes below and with n; a long text counts as several.
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
      fail(n.place, fmt::format("more than {} values, aliases expanded; this is no job file", kMaxYamlNodes));
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
      if (n.kind != YamlNode::Kind::scalar || n.text.empty()) fail(n.place, "a key must be a word");
      if (n.text == "<<" && !n.quoted) fail(n.place, "merge keys (<<) are not supported; write the keys out");
      if (YamlNode* before = o.node.find(n.text)) {
        fail(n.place, fmt::format("duplicate key '{}', first given at {}; remove one", excerpt(n.text),
                                  before->place.words()));
      }
      o.key = std::move(n);
    } else {
      // An empty value has no place of its own.
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
  return line == 0 ? source : fmt::format("{}:{}:{}", source, line, column);
}

YamlNode* YamlNode::find(const std::string& key) {
  for (Entry& e : map) {
    if (e.key == key) return &e.value;
  }
  return nullptr;
}

YamlNode parse_yaml(const std::string& whole, const std::string& source) {
  if (const auto encoding = wide_encoding(whole); !encoding.empty())
    throw UsageError("{}", wide_encoding_error(source, encoding));
  // yaml-cpp does not count a byte order mark in its columns either.
  const std::string text = whole.starts_with(kByteOrderMark) ? whole.substr(kByteOrderMark.size()) : whole;
  const Lines lines(text);
  if (text.size() > kMaxYamlBytes) {
    throw UsageError("{}: {} of YAML; a job file has at most {}", source, human_bytes(text.size()),
                     human_bytes(kMaxYamlBytes));
  }
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string::npos) {
    throw UsageError("{}: not UTF-8 text (byte 0x{:02x}); save the file as UTF-8",
                     lines.place_of(source, bad).words(), static_cast<unsigned char>(text[bad]));
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    if ((c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7F) {
      throw UsageError("{}: control character 0x{:02x}; this is no YAML text",
                       lines.place_of(source, i).words(), c);
    }
  }
  std::istringstream in(text);
  Builder builder(source, lines);
  try {
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) return YamlNode{.place = {source, 1, 1}};
    Builder second(source, lines);
    if (parser.HandleNextDocument(second)) {
      throw UsageError("{}: a second YAML document; a job file holds one", second.root.place.words());
    }
  } catch (const YAML::Exception& e) {
    const Place p = lines.place(source, e.mark.line, e.mark.column);
    if (const int tab = lines.tab_up_to(p.line)) {
      throw UsageError("{}: the line is indented by a tab; YAML wants spaces", Place{source, tab, 1}.words());
    }
    throw UsageError("{}: not valid YAML: {}", p.words(), e.msg);
  }
  return std::move(builder.root);
}

YamlNode parse_yaml_value(const std::string& text, const std::string& source) {
  YamlNode n;
  try {
    n = parse_yaml(text, source);
  } catch (const UsageError& e) {
    // The place inside so short a text says nothing.
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

std::string read_yaml_file(const std::string& path) {
  std::error_code ec;
  const auto status = std::filesystem::status(path, ec);
  if (!std::filesystem::exists(status)) throw UsageError("job file '{}' does not exist", path);
  if (std::filesystem::is_directory(status)) throw UsageError("job file '{}' is a folder", path);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) throw UsageError("job file '{}' cannot be opened: {}", path, std::strerror(errno));
  // One byte more than allowed, so that parse_yaml sees that it is too much.
  std::string text(kMaxYamlBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (in.bad()) throw UsageError("job file '{}' cannot be read: {}", path, std::strerror(errno));
  return text;
}

}  // namespace redco
