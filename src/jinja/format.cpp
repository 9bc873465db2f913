// "...".format(...) and "..." % values, for texts and numbers.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/utf8.h"
#include "jinja/ops.h"
#include "jinja/text.h"

namespace redco::jinja {
namespace {

constexpr i64 kMaxWidth = 10'000;

struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false, comma = false;
  i64 width = 0;
  std::optional<i64> precision;
  char type = 0;
};

std::string grouped(std::string digits) {
  std::size_t end = digits.find_first_not_of("0123456789");
  if (end == digits.npos) end = digits.size();
  for (std::size_t i = end; i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

std::string padded(const std::string& sign, const std::string& body, const Spec& s, char align) {
  const i64 missing = s.width - code_points(sign) - code_points(body);
  if (missing <= 0) return sign + body;
  std::string fill;
  auto pad = [&](i64 n) {
    std::string out;
    for (i64 i = 0; i < n; ++i) out += s.fill;
    return out;
  };
  switch (align) {
    case '<':
      return sign + body + pad(missing);
    case '^':
      return pad(missing / 2) + sign + body + pad(missing - missing / 2);
    case '=':
      return sign + pad(missing) + body;
    default:
      return pad(missing) + sign + body;
  }
}

std::string formatted(const Value& v, const Spec& s) {
  if (v.is_number() && s.type != 's') {
    std::string body;
    const bool integral = v.is_int() && s.type != 'f' && s.type != 'F' && s.type != 'e' && s.type != 'E' &&
                          s.type != 'g' && s.type != 'G' && s.type != '%';
    const bool is_negative = integral ? v.integer() < 0 : std::signbit(v.number());
    if (integral) {
      const auto raw = static_cast<std::uint64_t>(v.integer());
      const std::uint64_t n = is_negative ? 0 - raw : raw;
      switch (s.type) {
        case 0:
        case 'd':
          body = std::to_string(n);
          break;
        case 'x':
          body = fmt::format("{}{:x}", s.alternate ? "0x" : "", n);
          break;
        case 'X':
          body = fmt::format("{}{:X}", s.alternate ? "0X" : "", n);
          break;
        case 'o':
          body = fmt::format("{}{:o}", s.alternate ? "0o" : "", n);
          break;
        case 'b':
          body = fmt::format("{}{:b}", s.alternate ? "0b" : "", n);
          break;
        default:
          throw Failure(fmt::format("Unknown format code '{}' for object of type 'int'", s.type));
      }
    } else {
      double d = std::abs(v.number());
      const int precision = static_cast<int>(s.precision.value_or(6));
      switch (s.type) {
        case 0:
          body = s.precision ? fmt::format("{:.{}g}", d, std::max(precision, 1)) : float_repr(d);
          break;
        case 'f':
        case 'F':
          body = fmt::format("{:.{}f}", d, precision);
          break;
        case 'e':
          body = fmt::format("{:.{}e}", d, precision);
          break;
        case 'E':
          body = fmt::format("{:.{}E}", d, precision);
          break;
        case 'g':
          body = fmt::format("{:.{}g}", d, std::max(precision, 1));
          break;
        case 'G':
          body = fmt::format("{:.{}G}", d, std::max(precision, 1));
          break;
        case '%':
          body = fmt::format("{:.{}f}%", d * 100, precision);
          break;
        default:
          throw Failure(fmt::format("Unknown format code '{}' for object of type 'float'", s.type));
      }
    }
    if (s.comma) body = grouped(body);
    const std::string sign = is_negative ? "-" : s.sign == '-' ? "" : std::string(1, s.sign);
    return padded(sign, body, s, s.align ? s.align : '>');
  }
  if (s.type != 0 && s.type != 's')
    throw Failure(fmt::format("Unknown format code '{}' for object of type '{}'", s.type, type_name(v)));
  std::string body = str(v);
  if (s.precision) body.resize(byte_of(body, *s.precision));
  return padded("", body, s, s.align ? s.align : '<');
}

i64 digits(std::string_view t, std::size_t& i) {
  i64 n = 0;
  while (i < t.size() && t[i] >= '0' && t[i] <= '9') {
    n = n * 10 + (t[i++] - '0');
    if (n > kMaxWidth) throw Failure(fmt::format("a width of more than {}", kMaxWidth));
  }
  return n;
}

Spec parse_spec(std::string_view t) {
  Spec s;
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  std::size_t i = 0;
  if (!t.empty()) {
    const char* p = t.data();
    next_code_point(p);
    const auto n = static_cast<std::size_t>(p - t.data());
    if (n < t.size() && is_align(t[n])) {
      s.fill = std::string(t.substr(0, n));
      s.align = t[n];
      i = n + 1;
    } else if (is_align(t[0])) {
      s.align = t[0];
      i = 1;
    }
  }
  if (i < t.size() && (t[i] == '+' || t[i] == '-' || t[i] == ' ')) s.sign = t[i++];
  if (i < t.size() && t[i] == '#') s.alternate = true, ++i;
  if (i < t.size() && t[i] == '0') {
    ++i;
    if (!s.align) s.align = '=', s.fill = "0";
  }
  s.width = digits(t, i);
  if (i < t.size() && t[i] == ',') s.comma = true, ++i;
  if (i < t.size() && t[i] == '.') {
    ++i;
    s.precision = digits(t, i);
  }
  if (i < t.size()) s.type = t[i++];
  if (i != t.size()) throw Failure(fmt::format("Invalid format specifier '{}'", t.substr(0, 60)));
  return s;
}

Value field(std::string_view name, const Arguments& a, std::size_t& next) {
  std::size_t i = name.find_first_of(".[");
  const std::string first(name.substr(0, i));
  Value v;
  if (first.empty() || first.find_first_not_of("0123456789") == first.npos) {
    std::size_t at = next++;
    i64 n = 0;
    if (!first.empty() && parse_int(first, 10, &n)) at = static_cast<std::size_t>(n);
    if (at >= a.at.size()) throw Failure("Replacement index out of range for positional args tuple");
    v = a.at[at];
  } else {
    auto it = std::find_if(a.named.begin(), a.named.end(), [&](const auto& p) { return p.first == first; });
    if (it == a.named.end()) throw Failure(fmt::format("format: no argument '{}'", first));
    v = it->second;
  }
  while (i < name.size()) {
    if (name[i] == '.') {
      const std::size_t to = std::min(name.find_first_of(".[", i + 1), name.size());
      v = attribute(v, std::string(name.substr(i + 1, to - i - 1)));
      i = to;
    } else {
      const std::size_t to = name.find(']', i);
      if (name[i] != '[' || to == name.npos) throw Failure("format: expected '.' or '[...]'");
      const std::string key(name.substr(i + 1, to - i - 1));
      i64 n = 0;
      v = item(v, parse_int(key, 10, &n) ? Value(n) : Value(key));
      i = to + 1;
    }
  }
  return v;
}

}  // namespace

std::string format_braces(const std::string& t, const Arguments& a) {
  std::string out;
  std::size_t next = 0;
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (t[i] == '}') {
      if (i + 1 >= t.size() || t[i + 1] != '}') throw Failure("Single '}' encountered in format string");
      out += t[i++];
    } else if (t[i] != '{') {
      out += t[i];
    } else if (i + 1 < t.size() && t[i + 1] == '{') {
      out += t[i++];
    } else {
      const std::size_t end = t.find('}', i);
      if (end == t.npos) throw Failure("Single '{' encountered in format string");
      std::string_view inside = std::string_view(t).substr(i + 1, end - i - 1);
      if (inside.find('{') != inside.npos) throw Failure("format: nested fields are not supported");
      i = end;
      std::string_view spec;
      if (const std::size_t colon = inside.find(':'); colon != inside.npos) {
        spec = inside.substr(colon + 1);
        inside = inside.substr(0, colon);
      }
      char conversion = 0;
      if (inside.size() >= 2 && inside[inside.size() - 2] == '!') {
        conversion = inside.back();
        inside.remove_suffix(2);
      }
      Value v = field(inside, a, next);
      if (conversion == 'r' || conversion == 'a')
        v = Value(repr(v));
      else if (conversion == 's')
        v = Value(str(v));
      else if (conversion)
        throw Failure(fmt::format("Unknown conversion specifier '{}'", conversion));
      out += formatted(v, parse_spec(spec));
    }
    if (static_cast<i64>(out.size()) > budget()->most)
      throw Failure("the template's values take too much memory");
  }
  return out;
}

std::string format_percent(const std::string& t, const Value& values) {
  std::string out;
  std::size_t next = 0;
  bool named = false;
  const bool many = values.is(Kind::tuple);
  auto take = [&]() -> Value {
    if (!many) {
      if (next++ > 0) throw Failure("not enough arguments for format string");
      return values;
    }
    if (next >= values.items().size()) throw Failure("not enough arguments for format string");
    return values.items()[next++];
  };
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (t[i] != '%') {
      out += t[i];
      continue;
    }
    ++i;
    std::optional<Value> by_name;
    if (i < t.size() && t[i] == '(') {
      const std::size_t end = t.find(')', i);
      if (end == t.npos) throw Failure("incomplete format key");
      if (!values.is(Kind::dict)) throw Failure("format requires a mapping");
      const Value* v = values.map().find(std::string_view(t).substr(i + 1, end - i - 1));
      if (!v) throw Failure(fmt::format("no value for %({})", t.substr(i + 1, end - i - 1)));
      by_name = *v;
      named = true;
      i = end + 1;
    }
    Spec s;
    bool zero = false;
    for (; i < t.size() && std::string_view("-+ #0").find(t[i]) != std::string_view::npos; ++i) {
      if (t[i] == '-') s.align = '<';
      if (t[i] == '+' || (t[i] == ' ' && s.sign != '+')) s.sign = t[i];
      if (t[i] == '#') s.alternate = true;
      if (t[i] == '0') zero = true;
    }
    s.width = digits(t, i);
    if (i < t.size() && t[i] == '.') {
      ++i;
      s.precision = digits(t, i);
    }
    if (i >= t.size()) throw Failure("incomplete format");
    if (t[i] == '%') {
      out += '%';
      continue;
    }
    Value v = by_name ? *by_name : take();
    s.type = t[i];
    if (!s.align) s.align = '>';
    switch (t[i]) {
      case 's':
        v = Value(str(v));
        break;
      case 'r':
      case 'a':
        v = Value(repr(v));
        s.type = 's';
        break;
      case 'c':
        if (!v.is_string()) throw Failure("%c requires a character");
        s.type = 's';
        break;
      case 'i':
      case 'u':
        s.type = 'd';
        [[fallthrough]];
      case 'd':
      case 'x':
      case 'X':
      case 'o':
        if (!v.is_number()) throw Failure(fmt::format("%{} format: a number is required", t[i]));
        if (!v.is_int()) {
          if (s.type != 'd' || !(std::abs(v.number()) < 9e18))
            throw Failure(fmt::format("%{} format: an integer is required", t[i]));
          v = Value(static_cast<i64>(v.number()));
        } else {
          v = Value(v.integer());
        }
        break;
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        if (!v.is_number()) throw Failure("must be real number");
        break;
      default:
        throw Failure(fmt::format("unsupported format character '{}'", t[i]));
    }
    if (zero && s.type != 's' && s.align != '<') {
      s.align = '=';
      s.fill = "0";
    }
    if (s.type == 'd' && s.precision) throw Failure("a precision with %d is not supported");
    out += formatted(v, s);
    if (static_cast<i64>(out.size()) > budget()->most)
      throw Failure("the template's values take too much memory");
  }
  const bool all = many ? next == values.items().size()
                        : next > 0 || named || values.is(Kind::dict) || values.is(Kind::list);
  if (!all) throw Failure("not all arguments converted during string formatting");
  return out;
}

}  // namespace redco::jinja
