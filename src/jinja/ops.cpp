#include "jinja/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/utf8.h"
#include "jinja/text.h"

namespace redco::jinja {
namespace {

Failure unsupported(const std::string& op, const Value& a, const Value& b) {
  return Failure(
      fmt::format("unsupported operand type(s) for {}: '{}' and '{}'", op, type_name(a), type_name(b)));
}

[[noreturn]] void too_large() { throw Failure("a number beyond 64 bits"); }

i64 add(i64 a, i64 b) {
  i64 r = 0;
  if (__builtin_add_overflow(a, b, &r)) too_large();
  return r;
}
i64 subtract(i64 a, i64 b) {
  i64 r = 0;
  if (__builtin_sub_overflow(a, b, &r)) too_large();
  return r;
}
i64 multiply(i64 a, i64 b) {
  i64 r = 0;
  if (__builtin_mul_overflow(a, b, &r)) too_large();
  return r;
}

i64 floor_divide(i64 a, i64 b) {
  if (b == 0) throw Failure("integer division or modulo by zero");
  if (a == std::numeric_limits<i64>::min() && b == -1) too_large();
  const i64 q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

double floor_mod(double a, double b) {
  double m = std::fmod(a, b);
  if (m != 0 && (m < 0) != (b < 0)) m += b;
  return m;
}

Value power(const Value& a, const Value& b) {
  if (!a.is_int() || !b.is_int() || b.integer() < 0) {
    if (a.number() == 0 && b.number() < 0) throw Failure("0.0 cannot be raised to a negative power");
    return Value(std::pow(a.number(), b.number()));
  }
  i64 base = a.integer(), result = 1;
  for (i64 n = b.integer(); n > 0; n >>= 1) {
    if (n & 1) result = multiply(result, base);
    if (n > 1) {
      if (base == 0 || base == 1) continue;
      if (base == -1) {
        base = 1;
        continue;
      }
      base = multiply(base, base);
    }
  }
  return Value(result);
}

Value arithmetic(const std::string& op, const Value& a, const Value& b) {
  if (op == "**") return power(a, b);
  if (a.is_int() && b.is_int() && op != "/") {
    const i64 x = a.integer(), y = b.integer();
    if (op == "+") return Value(add(x, y));
    if (op == "-") return Value(subtract(x, y));
    if (op == "*") return Value(multiply(x, y));
    if (op == "//") return Value(floor_divide(x, y));
    return Value(y == -1 ? i64{0} : x - floor_divide(x, y) * y);
  }
  const double x = a.number(), y = b.number();
  if (op == "+") return Value(x + y);
  if (op == "-") return Value(x - y);
  if (op == "*") return Value(x * y);
  if (y == 0) throw Failure("division by zero");
  if (op == "/") return Value(x / y);
  if (op == "//") return Value(std::floor(x / y));
  return Value(floor_mod(x, y));
}

Value repeated(const Value& v, i64 times) {
  times = std::max<i64>(times, 0);
  const auto size = static_cast<i64>(v.is_string() ? v.text().size() : v.items().size() * sizeof(Value));
  if (size == 0) times = 0;
  if (size && times > budget()->most / size) throw Failure("the template's values take too much memory");
  if (v.is_string()) {
    std::string out;
    out.reserve(static_cast<std::size_t>(size * times));
    for (i64 i = 0; i < times; ++i) out += v.text();
    return Value(std::move(out), v.markup());
  }
  Values out;
  for (i64 i = 0; i < times; ++i) out.insert(out.end(), v.items().begin(), v.items().end());
  return Value::sequence(v.kind(), std::move(out));
}

// Escapes <, >, & and quotes like markupsafe, which does so if only one side of + is safe markup.
std::string escaped(const Value& v) {
  if (v.markup()) return v.text();
  std::string out;
  for (char c : v.text()) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// The attributes of `loop`.
Value loop_attribute(const Value& v, const std::string& name) {
  LoopObject& l = v.loop();
  const auto n = static_cast<i64>(l.items.size());
  auto at = [&](i64 i) { return l.items[static_cast<std::size_t>(i)]; };
  if (name == "index") return Value(l.at + 1);
  if (name == "index0") return Value(l.at);
  if (name == "revindex") return Value(n - l.at);
  if (name == "revindex0") return Value(n - l.at - 1);
  if (name == "first") return Value(l.at == 0);
  if (name == "last") return Value(l.at + 1 >= n);
  if (name == "length") return Value(n);
  if (name == "depth") return Value(l.depth0 + 1);
  if (name == "depth0") return Value(l.depth0);
  if (name == "previtem") return l.at > 0 ? at(l.at - 1) : Value::undefined("there is no previous item");
  if (name == "nextitem") return l.at + 1 < n ? at(l.at + 1) : Value::undefined("there is no next item");
  if (name == "cycle")
    return Value::function(std::make_shared<FunctionObject>(
        "cycle",
        [v](Arguments& a) {
          if (a.at.empty()) throw Failure("no items for cycling given");
          return a.at[static_cast<std::size_t>(v.loop().at) % a.at.size()];
        },
        v.depth()));
  if (name == "changed")
    return Value::function(std::make_shared<FunctionObject>(
        "changed",
        [v](Arguments& a) {
          std::string now = repr(Value::tuple(a.at));
          const bool differs = now != v.loop().changed_from;
          v.loop().changed_from = std::move(now);
          return Value(differs);
        },
        v.depth()));
  return {};
}

}  // namespace

i64 need_int(const Value& v, const char* what) {
  need_defined(v);
  if (!v.is_int()) throw Failure(fmt::format("{}: expected an integer, found {}", what, type_name(v)));
  return v.integer();
}

const std::string& need_text(const Value& v, const char* what) {
  need_defined(v);
  if (!v.is_string()) throw Failure(fmt::format("{}: expected a text, found {}", what, type_name(v)));
  return v.text();
}

Value negative(const Value& v) {
  if (!v.is_int()) return Value(-v.number());
  return Value(subtract(0, v.integer()));
}

Value binary(const std::string& op, const Value& a, const Value& b) {
  need_defined(a);
  need_defined(b);
  if (a.is_number() && b.is_number()) return arithmetic(op, a, b);
  auto repeatable = [](const Value& v) { return v.is_string() || v.is(Kind::list) || v.is(Kind::tuple); };
  if (op == "+") {
    if (a.is_string() && b.is_string()) {
      if (a.markup() || b.markup()) return Value(escaped(a) + escaped(b), true);
      return Value(a.text() + b.text());
    }
    if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
      Values all = a.items();
      all.insert(all.end(), b.items().begin(), b.items().end());
      return Value::sequence(a.kind(), std::move(all));
    }
    if (a.is_string())
      throw Failure(fmt::format("can only concatenate str (not \"{}\") to str", type_name(b)));
  }
  if (op == "*" && repeatable(a) && b.is_int()) return repeated(a, b.integer());
  if (op == "*" && repeatable(b) && a.is_int()) return repeated(b, a.integer());
  if (op == "%" && a.is_string()) return Value(format_percent(a.text(), b));
  throw unsupported(op, a, b);
}

bool contains(const Value& container, const Value& v) {
  if (container.is_string()) {
    if (!v.is_string()) {
      need_defined(v);
      throw Failure(fmt::format("'in <string>' requires string as left operand, not {}", type_name(v)));
    }
    spend_search(container.text(), v.text());
    return container.text().find(v.text()) != std::string::npos;
  }
  if (container.is(Kind::dict)) return container.map().find(v) != nullptr;
  if (container.has_items()) {
    for (const Value& i : container.items())
      if (equal(i, v)) return true;
    return false;
  }
  if (container.is(Kind::undefined)) return false;
  throw Failure(fmt::format("argument of type '{}' is not iterable", type_name(container)));
}

bool compare(const std::string& op, const Value& a, const Value& b) {
  if (op == "==") return equal(a, b);
  if (op == "!=") return !equal(a, b);
  if (op == "in") return contains(b, a);
  if (op == "not in") return !contains(b, a);
  if (op == "<") return less(a, b);
  if (op == ">") return less(b, a);
  if (op == "<=") return less(a, b) || equal(a, b);
  return less(b, a) || equal(a, b);
}

Value attribute(const Value& object, const std::string& name) {
  need_defined(object);
  if (object.is(Kind::space)) {
    const Value* v = object.map().find(std::string_view(name));
    return v ? *v : Value();
  }
  if (object.is(Kind::loop)) return loop_attribute(object, name);
  if (object.is(Kind::tuple) && object.label() == kGroupLabel && (name == "grouper" || name == "list"))
    return object.items()[name == "list"];
  if (Value m = method(object, name); m.is(Kind::function)) return m;
  if (object.is(Kind::dict))
    if (const Value* v = object.map().find(std::string_view(name))) return *v;
  if (name.starts_with("__"))
    return Value::undefined(
        fmt::format("access to attribute '{}' of '{}' object is unsafe.", name, type_name(object)));
  return {};
}

Value item(const Value& object, const Value& key) {
  need_defined(object);
  const bool hashable = !key.is(Kind::list) && !key.is(Kind::dict);
  if (object.is(Kind::dict)) {
    if (hashable)
      if (const Value* v = object.map().find(key)) return *v;
  } else if (key.is_int() && (object.is_string() || object.is(Kind::list) || object.is(Kind::tuple) ||
                              object.is(Kind::range))) {
    const i64 n = length(object);
    i64 i = key.integer();
    if (i < 0) i += n;
    if (i < 0 || i >= n) return {};
    if (!object.is_string()) return object.items()[static_cast<std::size_t>(i)];
    const std::string& s = object.text();
    spend(static_cast<i64>(s.size() / 64));
    const char* from = s.data() + byte_of(s, i);
    const char* to = from;
    next_code_point(to);
    return Value(std::string(from, to), object.markup());
  }
  if (key.is_string()) return attribute(object, key.text());
  return {};
}

Value slice(const Value& object, const Value& start, const Value& stop, const Value& step) {
  need_defined(object);
  if (!object.is_string() && !object.is(Kind::list) && !object.is(Kind::tuple) && !object.is(Kind::range))
    return {};
  auto number = [](const Value& v, i64 otherwise) {
    return v.is(Kind::none) ? otherwise : need_int(v, "slice");
  };
  const i64 n = length(object);
  const i64 by = number(step, 1);
  if (by == 0) throw Failure("slice step cannot be zero");
  auto clamp = [&](i64 i) {
    if (i < 0) i = i < -n ? -1 : i + n;
    return by > 0 ? std::clamp<i64>(i, 0, n) : std::clamp<i64>(i, -1, n - 1);
  };
  const i64 from = start.is(Kind::none) ? (by > 0 ? 0 : n - 1) : clamp(number(start, 0));
  const i64 to = stop.is(Kind::none) ? (by > 0 ? n : -1) : clamp(number(stop, 0));
  if (object.is_string() && by == 1) {
    const std::string& s = object.text();
    spend(static_cast<i64>(s.size() / 64));
    const std::size_t a = byte_of(s, from), b = std::max(a, byte_of(s, to));
    return Value(s.substr(a, b - a), object.markup());
  }
  Values characters;
  if (object.is_string()) characters = iterate(object);
  const Values& all = object.is_string() ? characters : object.items();
  Values out;
  for (i64 i = from; by > 0 ? i < to : i > to;) {
    out.push_back(all[static_cast<std::size_t>(i)]);
    if (by > 0 ? by > n - i : by < -1 - i) break;  // i + by is out of range and might overflow
    i += by;
  }
  if (object.is_string()) {
    std::string text;
    for (const Value& c : out) text += c.text();
    return Value(std::move(text), object.markup());
  }
  if (object.is(Kind::range)) return Value::sequence(Kind::range, std::move(out), "range(...)");
  return Value::sequence(object.kind(), std::move(out));
}

}  // namespace redco::jinja
