// Filters on numbers.
#include <fmt/format.h>

#include <cmath>

#include "jinja/filter_tables.h"
#include "jinja/ops.h"

namespace redco::jinja {
namespace {

Value to_int(const Value& v, Arguments& a) {
  const auto p = bind("int", a, {"default", "base"});
  need_defined(v);
  const Value otherwise = p[0] ? *p[0] : Value(0);
  i64 n = 0;
  double d = 0;
  if (v.is_string()) {
    if (parse_int(v.text(), p[1] ? need_int(*p[1], "int: base") : 10, &n)) return Value(n);
    if (!parse_float(v.text(), &d)) return otherwise;
  } else if (v.is_int()) {
    return Value(v.integer());
  } else if (v.is(Kind::real)) {
    d = v.number();
  } else {
    return otherwise;
  }
  if (!std::isfinite(d)) return otherwise;
  if (std::abs(d) >= 9.2e18) throw Failure("a number beyond 64 bits");
  return Value(static_cast<i64>(d));
}

Value to_float(const Value& v, Arguments& a) {
  const auto p = bind("float", a, {"default"});
  need_defined(v);
  double d = 0;
  if (v.is_number()) return Value(v.number());
  if (v.is_string() && parse_float(v.text(), &d)) return Value(d);
  return p[0] ? *p[0] : Value(0.0);
}

Value round_to(const Value& v, Arguments& a) {
  const auto p = bind("round", a, {"precision", "method"});
  need_defined(v);
  if (!v.is_number()) throw Failure(fmt::format("type {} doesn't define __round__ method", type_name(v)));
  const i64 precision = p[0] ? need_int(*p[0], "round") : 0;
  const std::string how = p[1] ? need_text(*p[1], "round: method") : "common";
  if (how != "common" && how != "ceil" && how != "floor")
    throw Failure("method must be common, ceil or floor");
  if (std::abs(precision) > 300) throw Failure("round: a precision beyond 300");
  const double scale = std::pow(10.0, static_cast<double>(precision));
  if (how != "common") {
    const double scaled = v.number() * scale;
    return Value((how == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / scale);
  }
  if (v.is_int() && precision >= 0) return Value(v.integer());
  if (v.is_int()) {  // half to even, at a power of ten
    if (precision < -18) return Value(0);
    i64 unit = 1;
    for (i64 i = 0; i < -precision; ++i) unit *= 10;
    const i64 n = v.integer();
    i64 q = n / unit, r = n % unit;
    if (r < 0) r += unit, --q;
    if (2 * static_cast<__int128>(r) > unit || (2 * static_cast<__int128>(r) == unit && q % 2 != 0)) ++q;
    i64 result = 0;
    if (__builtin_mul_overflow(q, unit, &result)) throw Failure("a number beyond 64 bits");
    return Value(result);
  }
  // As in Python, correctly rounded, half to even: by formatting the decimal digits.
  if (!std::isfinite(v.number())) return v;
  double d = 0;
  if (precision >= 0)
    parse_float(fmt::format("{:.{}f}", v.number(), precision), &d);
  else
    d = std::nearbyint(v.number() * scale) / scale;
  return Value(d);
}

}  // namespace

const FilterTable& number_filters() {
  static const FilterTable table = {
      {"abs",
       [](const Value& v, Arguments& a) {
         bind("abs", a, {});
         need_defined(v);
         if (!v.is_number()) throw Failure(fmt::format("bad operand type for abs(): '{}'", type_name(v)));
         return v.number() < 0 ? negative(v) : v.is_int() ? Value(v.integer()) : Value(std::abs(v.number()));
       }},
      {"float", to_float},
      {"int", to_int},
      {"round", round_to},
  };
  return table;
}

}  // namespace redco::jinja
