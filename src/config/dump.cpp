#include "config/dump.h"

#include <fmt/format.h>

#include "base/error.h"
#include "config/resolve.h"

namespace redco {

namespace {

using Kind = Setting::Kind;

// The text in double quotes, with YAML's escapes.
std::string yaml_quote(const std::string& text) {
  std::string s = "\"";
  for (const char c : text) {
    const auto u = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      s += '\\', s += c;
    } else if (c == '\n') {
      s += "\\n";
    } else if (c == '\t') {
      s += "\\t";
    } else if (u < 0x20 || u == 0x7F) {
      s += fmt::format("\\x{:02x}", u);
    } else {
      s += c;
    }
  }
  return s + '"';
}

// Whether the text needs no quotes: a word or path that cannot be read as a number, boolean or null.
bool is_plain(const std::string& text) {
  const std::string_view inside = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+";
  if (text.empty() || text.find_first_not_of(inside) != std::string::npos) return false;
  if (!std::isalpha(static_cast<unsigned char>(text[0])) && text[0] != '/' && text[0] != '.') return false;
  if (text == "null" || text == "Null" || text == "NULL" || text.rfind("...", 0) == 0) return false;
  YamlNode n;
  n.kind = YamlNode::Kind::scalar;
  n.text = text;
  return std::holds_alternative<std::string>(resolve(n));
}

void dump(const std::vector<Setting>& settings, const std::string& indent, std::string& out) {
  for (const Setting& s : settings) {
    switch (s.kind) {
      case Kind::section:
        out += fmt::format("{}{}:\n", indent, s.name);
        dump(s.fields, indent + "  ", out);
        break;
      case Kind::items: {
        const std::size_t n = s.n_items();
        const std::string none = s.takes_word() ? " " + yaml_value(s) : " []";
        out += fmt::format("{}{}:{}\n", indent, s.name, n == 0 ? none : "");
        for (std::size_t i = 0; i < n; ++i) {
          std::string entry;
          dump(s.item(i), indent + "    ", entry);
          entry[indent.size() + 2] = '-';
          out += entry;
        }
        break;
      }
      case Kind::rest:
        for (const auto& [key, json] : *s.others) {
          out += fmt::format("{}{}: {}\n", indent, yaml_scalar(key), json);
        }
        break;
      default:
        out += fmt::format("{}{}: {}\n", indent, s.name, yaml_value(s));
    }
  }
}

}  // namespace

std::string yaml_scalar(const SettingValue& v) {
  if (std::holds_alternative<std::monostate>(v)) return "~";
  if (const bool* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (const i64* i = std::get_if<i64>(&v)) return fmt::format("{}", *i);
  if (const double* d = std::get_if<double>(&v)) return fmt::format("{}", *d);
  const auto& text = std::get<std::string>(v);
  return is_plain(text) ? text : yaml_quote(text);
}

std::string yaml_value(const Setting& s) {
  const std::vector<SettingValue> values = s.get();
  if (!s.list) {
    const SettingValue& v = values.at(0);
    const bool null = std::holds_alternative<std::monostate>(v);
    if (null && !s.null_word.empty()) return s.null_word;
    // A text equal to the word for null is quoted, because it is not null.
    const std::string* text = std::get_if<std::string>(&v);
    return text && *text == s.null_word ? yaml_quote(*text) : yaml_scalar(v);
  }
  std::string out = "[";
  for (const SettingValue& v : values) out += (out.size() > 1 ? ", " : "") + yaml_scalar(v);
  return out + "]";
}

std::string dump_settings(const std::vector<Setting>& settings) {
  std::string out;
  dump(settings, "", out);
  return out;
}

}  // namespace redco
