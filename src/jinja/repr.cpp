// Python's str() and repr().
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "base/utf8.h"
#include "jinja/text.h"
#include "jinja/value.h"

namespace redco::jinja {

std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  // The shortest digits that round-trip. Python writes an exponent below 1e-4 and from 1e16 on.
  char buffer[64];
  const double size = std::abs(d);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, d,
                                 exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string s(buffer, end.ptr);
  if (!exponent && s.find('.') == s.npos) s += ".0";
  return s;
}

std::string string_repr(std::string_view s) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char *p = s.data(), *end = p + s.size(); p < end;) {
    const char* from = p;
    const char32_t c = next_code_point(p);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out.append(from, p);
    } else {
      const auto n = static_cast<std::uint32_t>(c);
      out += n < 0x100     ? fmt::format("\\x{:02x}", n)
             : n < 0x10000 ? fmt::format("\\u{:04x}", n)
                           : fmt::format("\\U{:08x}", n);
    }
  }
  return out + quote;
}

namespace {

void append_repr(const Value& v, std::string& out, int depth) {
  if (depth > kMaxNesting) throw Failure("values nested too deep to be shown");
  spend(1);
  const std::size_t before = out.size();
  auto all = [&](const char* open, const Values& items, const char* close) {
    out += open;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) out += ", ";
      append_repr(items[i], out, depth + 1);
    }
    out += close;
  };
  auto pairs = [&](const DictObject& d) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : d.entries) {
      if (!first) out += ", ";
      first = false;
      append_repr(key, out, depth + 1);
      out += ": ";
      append_repr(value, out, depth + 1);
    }
    out += '}';
  };
  switch (v.kind()) {
    case Kind::undefined:
      out += "Undefined";
      break;
    case Kind::none:
      out += "None";
      break;
    case Kind::boolean:
      out += v.boolean() ? "True" : "False";
      break;
    case Kind::integer:
      out += std::to_string(v.integer());
      break;
    case Kind::real:
      out += float_repr(v.number());
      break;
    case Kind::string:
      out += v.markup() ? "Markup(" + string_repr(v.text()) + ")" : string_repr(v.text());
      break;
    case Kind::list:
      all("[", v.items(), "]");
      break;
    case Kind::tuple:
      all("(", v.items(), v.items().size() == 1 ? ",)" : ")");
      break;
    case Kind::range:
      out += v.label();
      break;
    case Kind::view:
      out += v.label() + "(";
      all("[", v.items(), "])");
      break;
    case Kind::generator:
      out += "<generator object " + v.label() + ">";
      break;
    case Kind::dict:
      pairs(v.map());
      break;
    case Kind::space:
      out += "<Namespace ";
      pairs(v.map());
      out += '>';
      break;
    case Kind::function:
      out += "<function " + v.function().name + ">";
      break;
    case Kind::loop:
      out += fmt::format("<LoopContext {}/{}>", v.loop().at + 1, v.loop().items.size());
      break;
  }
  spend(static_cast<i64>(out.size() - before) / 64);
  if (budget() && static_cast<i64>(out.size()) > budget()->most)
    throw Failure("the template's values take too much memory");
}

}  // namespace

std::string repr(const Value& v) {
  std::string out;
  append_repr(v, out, 0);
  return out;
}

std::string str(const Value& v) {
  if (v.is_string()) return v.text();
  if (v.is(Kind::undefined)) return {};
  return repr(v);
}

}  // namespace redco::jinja
