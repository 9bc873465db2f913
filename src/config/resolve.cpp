#include "config/resolve.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/error.h"
#include "config/tree.h"

namespace redco {

namespace {

bool digits(std::string_view s) {
  return !s.empty() && s.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string_view unsigned_part(std::string_view s) {
  return !s.empty() && (s[0] == '-' || s[0] == '+') ? s.substr(1) : s;
}

// [-+]? [0-9]+, or 0o7, 0xF
bool looks_like_integer(std::string_view s) {
  if (s.rfind("0x", 0) == 0) {
    return s.size() > 2 && s.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos;
  }
  if (s.rfind("0o", 0) == 0)
    return s.size() > 2 && s.find_first_not_of("01234567", 2) == std::string_view::npos;
  return digits(unsigned_part(s));
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?
bool looks_like_real(std::string_view s) {
  s = unsigned_part(s);
  if (const auto e = s.find_first_of("eE"); e != std::string_view::npos) {
    if (!digits(unsigned_part(s.substr(e + 1)))) return false;
    s = s.substr(0, e);
  }
  const auto dot = s.find('.');
  if (dot == std::string_view::npos) return digits(s);
  const std::string_view whole = s.substr(0, dot), part = s.substr(dot + 1);
  return (whole.empty() || digits(whole)) && (part.empty() || digits(part)) &&
         !(whole.empty() && part.empty());
}

std::string json_quote(std::string_view text) {
  std::string s = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      s += '\\', s += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      s += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      s += c;
    }
  }
  return s + '"';
}

}  // namespace

SettingValue resolve(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::null) return {};
  const std::string& s = node.text;
  if (node.quoted) return s;
  if (s == "true" || s == "True" || s == "TRUE") return true;
  if (s == "false" || s == "False" || s == "FALSE") return false;
  if (looks_like_integer(s)) {
    const int base = s.rfind("0x", 0) == 0 ? 16 : s.rfind("0o", 0) == 0 ? 8 : 10;
    const char* first = s.data() + (base != 10 ? 2 : s[0] == '+' ? 1 : 0);
    i64 x = 0;
    if (std::from_chars(first, s.data() + s.size(), x, base).ec == std::errc()) return x;
    return s;
  }
  if (looks_like_real(s)) {
    double x = 0;
    const char* first = s.data() + (s[0] == '+' ? 1 : 0);
    if (std::from_chars(first, s.data() + s.size(), x).ec == std::errc()) return x;
    return s;
  }
  const std::string_view u = unsigned_part(s);
  if (u == ".inf" || u == ".Inf" || u == ".INF") return s[0] == '-' ? -HUGE_VAL : HUGE_VAL;
  if (s == ".nan" || s == ".NaN" || s == ".NAN") return std::nan("");
  return s;
}

std::string to_json_text(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "null";
    case YamlNode::Kind::list: {
      std::string s = "[";
      for (const YamlNode& e : node.list) s += (s.size() > 1 ? ", " : "") + to_json_text(e);
      return s + "]";
    }
    case YamlNode::Kind::map: {
      std::string s = "{";
      for (const YamlNode::Entry& e : node.map) {
        s += (s.size() > 1 ? ", " : "") + json_quote(e.key) + ": " + to_json_text(e.value);
      }
      return s + "}";
    }
    case YamlNode::Kind::scalar:
      break;
  }
  const SettingValue v = resolve(node);
  if (const bool* b = std::get_if<bool>(&v)) return *b ? "true" : "false";
  if (const i64* i = std::get_if<i64>(&v)) return fmt::format("{}", *i);
  if (const double* d = std::get_if<double>(&v)) {
    if (!std::isfinite(*d)) {
      throw UsageError("{}: {} is not a finite number", node.place.words(), node.text);
    }
    // The shortest digits that read back as the same number, with a point or an exponent, so it stays a real.
    std::string s = fmt::format("{}", *d);
    return s.find_first_of(".e") == std::string::npos ? s + ".0" : s;
  }
  if (!node.quoted && (looks_like_integer(node.text) || looks_like_real(node.text))) {
    throw UsageError("{}: the number {} is too large or too small", node.place.words(), node.text);
  }
  return json_quote(node.text);
}

}  // namespace redco
