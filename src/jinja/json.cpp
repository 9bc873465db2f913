// JSON to values, and values to JSON.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/utf8.h"
#include "jinja/ops.h"

namespace redco::jinja {
namespace {

constexpr int kMaxJsonDepth = 64;

// Builds the value during parsing, which needs no second copy and bounds the depth.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(const std::string& where) : where_(where) {}
  Value result;

  bool null() override { return put(Value::none()); }
  bool boolean(bool v) override { return put(Value(v)); }
  bool number_integer(number_integer_t v) override { return put(Value(static_cast<i64>(v))); }
  bool number_unsigned(number_unsigned_t v) override {
    if (v > static_cast<number_unsigned_t>(INT64_MAX)) fail("a number beyond 64 bits");
    return put(Value(static_cast<i64>(v)));
  }
  bool number_float(number_float_t v, const string_t& raw) override {
    if (raw.find_first_of(".eE") == raw.npos) fail("a number beyond 64 bits");
    return put(Value(static_cast<double>(v)));
  }
  bool string(string_t& v) override { return put(Value(std::move(v))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(true); }
  bool end_object() override { return close(); }
  bool start_array(std::size_t) override { return open(false); }
  bool end_array() override { return close(); }
  bool key(string_t& v) override {
    open_.back().key = std::move(v);
    return true;
  }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& e) override {
    std::string what = e.what();
    const std::size_t begin = what.rfind(": ");
    fail(fmt::format("not valid JSON at byte {}: {}", position,
                     what.substr(begin == what.npos ? 0 : begin + 2).substr(0, 200)));
  }

 private:
  struct Level {
    std::shared_ptr<DictObject> dict;  // null: a list
    Values items;
    std::string key;
  };

  [[noreturn]] void fail(const std::string& message) const { throw ContentsError("{}: {}", where_, message); }

  bool put(Value v) {
    if (open_.empty())
      result = std::move(v);
    else if (open_.back().dict)
      open_.back().dict->set(Value(std::move(open_.back().key)), std::move(v));
    else
      open_.back().items.push_back(std::move(v));
    return true;
  }
  bool open(bool object) {
    if (open_.size() == kMaxJsonDepth) fail(fmt::format("nested deeper than {} levels", kMaxJsonDepth));
    open_.push_back({object ? std::make_shared<DictObject>() : nullptr, {}, {}});
    return true;
  }
  bool close() {
    Level top = std::move(open_.back());
    open_.pop_back();
    return put(top.dict ? Value::dict(std::move(top.dict)) : Value::list(std::move(top.items)));
  }

  const std::string& where_;
  std::vector<Level> open_;
};

struct Style {
  bool ascii, sorted, lines;
  std::string indent, item, key;
};

void append_text(std::string_view s, const Style& style, std::string& out) {
  out += '"';
  for (const char *p = s.data(), *end = p + s.size(); p < end;) {
    const char* from = p;
    const char32_t c = next_code_point(p);
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\b':
        out += "\\b";
        break;
      default: {
        auto n = static_cast<std::uint32_t>(c);
        if (n < 0x20 || (style.ascii && n > 0x7E && n < 0x10000)) {
          out += fmt::format("\\u{:04x}", n);
        } else if (style.ascii && n >= 0x10000) {
          n -= 0x10000;
          out += fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (n >> 10), 0xDC00 + (n & 0x3FF));
        } else {
          out.append(from, p);
        }
      }
    }
  }
  out += '"';
}

std::string json_number(const Value& v) {
  if (v.is(Kind::boolean)) return v.boolean() ? "true" : "false";
  if (v.is_int()) return std::to_string(v.integer());
  const std::string s = float_repr(v.number());
  return s == "nan" ? "NaN" : s == "inf" ? "Infinity" : s == "-inf" ? "-Infinity" : s;
}

void append(const Value& v, const Style& style, std::size_t level, std::string& out) {
  spend(1 + static_cast<i64>(v.is_string() ? v.text().size() / 16 : 0));
  if (budget() && static_cast<i64>(out.size()) > budget()->most)
    throw Failure("the template's values take too much memory");
  auto line = [&](std::size_t deep) {
    if (!style.lines) return;
    out += '\n';
    for (std::size_t i = 0; i < deep; ++i) out += style.indent;
  };
  switch (v.kind()) {
    case Kind::none:
      out += "null";
      return;
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
      out += json_number(v);
      return;
    case Kind::string:
      append_text(v.text(), style, out);
      return;
    case Kind::list:
    case Kind::tuple: {
      if (v.items().empty()) {
        out += "[]";
        return;
      }
      out += '[';
      for (std::size_t i = 0; i < v.items().size(); ++i) {
        if (i) out += style.item;
        line(level + 1);
        append(v.items()[i], style, level + 1, out);
      }
      line(level);
      out += ']';
      return;
    }
    case Kind::dict: {
      if (v.map().entries.empty()) {
        out += "{}";
        return;
      }
      auto entries = v.map().entries;
      if (style.sorted)
        std::stable_sort(entries.begin(), entries.end(),
                         [](const auto& a, const auto& b) { return less(a.first, b.first); });
      out += '{';
      bool first = true;
      for (const auto& [key, value] : entries) {
        if (!first) out += style.item;
        first = false;
        line(level + 1);
        if (key.is_string())
          append_text(key.text(), style, out);
        else if (key.is_number())
          out += '"' + json_number(key) + '"';
        else if (key.is(Kind::none))
          out += "\"null\"";
        else
          throw Failure(fmt::format("keys must be str, int, float, bool or None, not {}", type_name(key)));
        out += style.key;
        append(value, style, level + 1, out);
      }
      line(level);
      out += '}';
      return;
    }
    default:
      throw Failure(fmt::format("Object of type {} is not JSON serializable", type_name(v)));
  }
}

}  // namespace

std::string to_json(const Value& v, bool ensure_ascii, const Value& indent, const Value& separators,
                    bool sort_keys) {
  Style style{ensure_ascii, sort_keys, !indent.is(Kind::none), "", ", ", ": "};
  if (style.lines) {
    style.item = ",";
    if (indent.is_string()) {
      style.indent = indent.text();
    } else {
      const i64 n = need_int(indent, "tojson: indent");
      if (n > 1000) throw Failure("tojson: an indent of more than 1000");
      style.indent = std::string(static_cast<std::size_t>(std::max<i64>(n, 0)), ' ');
    }
  }
  if (!separators.is(Kind::none)) {
    const Values two = iterate(separators);
    if (two.size() != 2) throw Failure("tojson: separators must be two strings");
    style.item = need_text(two[0], "tojson: separators");
    style.key = need_text(two[1], "tojson: separators");
  }
  std::string out;
  append(v, style, 0, out);
  return out;
}

Value from_json(std::string_view json, const std::string& where) {
  if (json.find('\0') != json.npos) throw ContentsError("{}: a zero byte is not valid in JSON", where);
  Builder builder(where);
  try {
    nlohmann::json::sax_parse(json.begin(), json.end(), &builder);
  } catch (const Failure& e) {
    throw ContentsError("{}: {}", where, e.what());
  }
  return std::move(builder.result);
}

}  // namespace redco::jinja
