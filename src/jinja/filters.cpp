#include "jinja/filters.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "jinja/ops.h"
#include "jinja/text.h"
#include "unicode/python_text.h"
#include "unicode/utf8.h"

namespace redco::jinja {
namespace {

using Filter = Value (*)(const Value& v, Arguments& a);
using PlainTest = bool (*)(const Value& v);  // without arguments
using Test = bool (*)(const Value& v, Arguments& a);

const std::map<std::string_view, Filter>& filters();
bool has_test(const std::string& name);

Value generator(Values items, const char* name) {
  return Value::sequence(Kind::generator, std::move(items), name);
}

bool given(const Value* v) { return v && !v->is(Kind::none); }
bool flag(const Value* v, bool otherwise = false) { return v ? truth(*v) : otherwise; }

// What jinja2's filters take for a text: str(v) of what isn't one.
std::string soft(const Value& v) { return str(v); }
Value folded(const Value& v) { return v.is_string() ? Value(python_lower(v.text())) : v; }

// --- Attributes: "a.b.0" ---

struct Getter {
  Values parts;
  const Value* otherwise = nullptr;
  Value operator()(Value v) const {
    for (const Value& p : parts) {
      v = item(v, p);
      if (otherwise && v.is(Kind::undefined)) v = *otherwise;
    }
    return v;
  }
};

Getter getter(const Value* attribute, const Value* otherwise = nullptr) {
  Getter g;
  g.otherwise = given(otherwise) ? otherwise : nullptr;
  if (!given(attribute)) return g;
  if (!attribute->is_string()) {
    g.parts.push_back(*attribute);
    return g;
  }
  for (std::string_view part : split(attribute->text(), ".", -1, false)) {
    i64 n = 0;
    if (all_are(part, TextTest::digit) && parse_int(part, 10, &n))
      g.parts.emplace_back(n);
    else
      g.parts.emplace_back(std::string(part));
  }
  return g;
}

// --- Sequences ---

Value first_or_last(const Value& v, Arguments& a, bool last) {
  bind("first", a, {});
  if (last && (v.is(Kind::undefined) || v.is(Kind::generator)))
    throw Failure(fmt::format("'{}' object is not reversible", type_name(v)));
  const Values all = iterate(v);
  if (all.empty())
    return Value::undefined(last ? "No last item, sequence was empty."
                                 : "No first item, sequence was empty.");
  return last ? all.back() : all.front();
}

void sort_by(Values& keys, Values& items, bool reverse) {
  std::vector<std::size_t> order(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  // Python's reverse keeps equal ones in their order too.
  std::stable_sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) {
    return reverse ? less(keys[y], keys[x]) : less(keys[x], keys[y]);
  });
  Values sorted, sorted_keys;
  for (std::size_t i : order) {
    sorted.push_back(items[i]);
    sorted_keys.push_back(keys[i]);
  }
  items = std::move(sorted);
  keys = std::move(sorted_keys);
}

Value sort(const Value& v, Arguments& a) {
  const auto p = bind("sort", a, {"reverse", "case_sensitive", "attribute"});
  Values items = iterate(v), keys;
  std::vector<Getter> getters;
  if (given(p[2]) && p[2]->is_string())
    for (std::string_view one : split(p[2]->text(), ",", -1, false)) {
      const Value name{std::string(one)};
      getters.push_back(getter(&name));
    }
  else
    getters.push_back(getter(p[2]));
  for (const Value& i : items) {
    Values key;
    for (const Getter& g : getters) key.push_back(flag(p[1]) ? g(i) : folded(g(i)));
    keys.push_back(Value::tuple(std::move(key)));
  }
  sort_by(keys, items, flag(p[0]));
  return Value::list(std::move(items));
}

Value dictsort(const Value& v, Arguments& a) {
  const auto p = bind("dictsort", a, {"case_sensitive", "by", "reverse"});
  const std::string by = p[1] ? need_text(*p[1], "dictsort: by") : "key";
  if (by != "key" && by != "value") throw Failure("You can only sort by either \"key\" or \"value\"");
  need_defined(v);
  if (!v.is(Kind::dict)) throw Failure(fmt::format("'{}' object has no attribute 'items'", type_name(v)));
  Values items, keys;
  for (const auto& [key, value] : v.map().entries) {
    items.push_back(Value::tuple({key, value}));
    const Value& k = by == "key" ? key : value;
    keys.push_back(flag(p[0]) ? k : folded(k));
  }
  sort_by(keys, items, flag(p[2]));
  return Value::list(std::move(items));
}

Value extreme(const Value& v, Arguments& a, bool most) {
  const auto p = bind(most ? "max" : "min", a, {"case_sensitive", "attribute"});
  const Getter g = getter(p[1]);
  const Values items = iterate(v);
  if (items.empty()) return Value::undefined("No aggregated item, sequence was empty.");
  auto key = [&](const Value& i) { return flag(p[0]) ? g(i) : folded(g(i)); };
  std::size_t best = 0;
  Value best_key = key(items[0]);
  for (std::size_t i = 1; i < items.size(); ++i) {
    Value k = key(items[i]);
    if (most ? less(best_key, k) : less(k, best_key)) {
      best = i;
      best_key = std::move(k);
    }
  }
  return items[best];
}

Value unique(const Value& v, Arguments& a) {
  const auto p = bind("unique", a, {"case_sensitive", "attribute"});
  const Getter g = getter(p[1]);
  std::set<std::string> seen;
  Values out;
  for (Value& i : iterate(v)) {
    const Value k = g(i);
    if (seen.insert(hash_key(flag(p[0]) ? k : folded(k))).second) out.push_back(std::move(i));
  }
  return generator(std::move(out), "sync_do_unique");
}

Value groupby(const Value& v, Arguments& a) {
  const auto p = bind("groupby", a, {"attribute", "default", "case_sensitive"}, 1);
  const Getter g = getter(p[0], p[1]);
  Values items = iterate(v), keys;
  for (const Value& i : items) keys.push_back(flag(p[2]) ? g(i) : folded(g(i)));
  sort_by(keys, items, false);
  Values out;
  for (std::size_t i = 0; i < items.size();) {
    std::size_t j = i;
    Values group;
    for (; j < items.size() && equal(keys[i], keys[j]); ++j) group.push_back(items[j]);
    out.push_back(Value::tuple({g(items[i]), Value::list(std::move(group))}));
    i = j;
  }
  return Value::list(std::move(out));
}

Value batch(const Value& v, Arguments& a) {
  const auto p = bind("batch", a, {"linecount", "fill_with"}, 1);
  const i64 n = need_int(*p[0], "batch");
  if (n < 1) throw Failure("batch: expected at least 1");
  Values out, row;
  for (Value& i : iterate(v)) {
    if (static_cast<i64>(row.size()) == n) out.push_back(Value::list(std::exchange(row, {})));
    row.push_back(std::move(i));
  }
  if (!row.empty()) {
    if (given(p[1])) {
      if (n > budget()->most / static_cast<i64>(sizeof(Value)))
        throw Failure("the template's values take too much memory");
      row.resize(static_cast<std::size_t>(n), *p[1]);
    }
    out.push_back(Value::list(std::move(row)));
  }
  return generator(std::move(out), "do_batch");
}

Value sliced(const Value& v, Arguments& a) {
  const auto p = bind("slice", a, {"slices", "fill_with"}, 1);
  const i64 slices = need_int(*p[0], "slice");
  const Values all = iterate(v);
  const auto n = static_cast<i64>(all.size());
  if (slices < 1 || slices > 100'000) throw Failure("slice: expected a number from 1 to 100000");
  Values out;
  i64 at = 0;
  for (i64 s = 0; s < slices; ++s) {
    const i64 size = n / slices + (s < n % slices ? 1 : 0);
    Values part(all.begin() + at, all.begin() + at + size);
    if (given(p[1]) && s >= n % slices) part.push_back(*p[1]);
    out.push_back(Value::list(std::move(part)));
    at += size;
  }
  return generator(std::move(out), "sync_do_slice");
}

Value map(const Value& v, Arguments& a) {
  Values out;
  if (!truth(v)) return generator({}, "sync_do_map");
  if (a.at.empty()) {
    const auto p = bind("map", a, {"attribute", "default"});
    if (!p[0]) throw Failure("map requires a filter argument");
    const Getter g = getter(p[0], p[1]);
    for (const Value& i : iterate(v)) out.push_back(g(i));
  } else {
    const std::string name = need_text(a.at[0], "map");
    for (const Value& i : iterate(v)) {
      Arguments rest{{a.at.begin() + 1, a.at.end()}, a.named};
      out.push_back(call_filter(name, i, rest));
    }
  }
  return generator(std::move(out), "sync_do_map");
}

Value chosen(const Value& v, Arguments& a, bool keep, bool by_attribute) {
  Values out;
  if (!truth(v)) return generator({}, "select_or_reject");
  Getter g;
  std::size_t first = 0;
  if (by_attribute) {
    if (a.at.empty()) throw Failure("Missing parameter for attribute name");
    g = getter(&a.at[0]);
    first = 1;
  }
  for (Value& i : iterate(v)) {
    const Value tested = g(i);
    bool yes;
    if (a.at.size() > first) {
      Arguments rest{{a.at.begin() + static_cast<std::ptrdiff_t>(first) + 1, a.at.end()}, a.named};
      yes = call_test(need_text(a.at[first], "select"), tested, rest);
    } else {
      yes = truth(tested);
    }
    if (yes == keep) out.push_back(std::move(i));
  }
  return generator(std::move(out), "select_or_reject");
}

Value join(const Value& v, Arguments& a) {
  const auto p = bind("join", a, {"d", "attribute"});
  const std::string between = p[0] ? soft(*p[0]) : "";
  const Getter g = getter(p[1]);
  std::string out;
  bool first = true;
  for (const Value& i : iterate(v)) {
    if (!first) out += between;
    first = false;
    out += str(g(i));
    if (static_cast<i64>(out.size()) > budget()->most)
      throw Failure("the template's values take too much memory");
  }
  return Value(std::move(out));
}

Value reverse(const Value& v, Arguments& a) {
  bind("reverse", a, {});
  if (v.is_string()) {
    Values all = iterate(v);
    std::string out;
    for (std::size_t i = all.size(); i-- > 0;) out += all[i].text();
    return Value(std::move(out));
  }
  Values all = iterate(v);
  std::reverse(all.begin(), all.end());
  return generator(std::move(all), "reversed");
}

Value sum(const Value& v, Arguments& a) {
  const auto p = bind("sum", a, {"attribute", "start"});
  const Getter g = getter(p[0]);
  Value total = p[1] ? *p[1] : Value(0);
  if (total.is_string()) throw Failure("sum() can't sum strings");
  for (const Value& i : iterate(v)) total = binary("+", total, g(i));
  return total;
}

// --- Numbers ---

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
  if (v.is_int()) {  // half to even, on a power of ten
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
  // Correctly rounded, half to even, as Python's: through the decimal digits.
  if (!std::isfinite(v.number())) return v;
  double d = 0;
  if (precision >= 0)
    parse_float(fmt::format("{:.{}f}", v.number(), precision), &d);
  else
    d = std::nearbyint(v.number() * scale) / scale;
  return Value(d);
}

// --- Texts ---

Value indent(const Value& v, Arguments& a) {
  const auto p = bind("indent", a, {"width", "first", "blank"});
  need_defined(v);
  const std::string& s = need_text(v, "indent");
  std::string by(4, ' ');
  if (p[0] && p[0]->is_string()) {
    by = p[0]->text();
  } else if (p[0]) {
    const i64 n = need_int(*p[0], "indent");
    if (n > 10'000) throw Failure("indent: a width of more than 10000");
    by = std::string(static_cast<std::size_t>(std::max<i64>(n, 0)), ' ');
  }
  const std::string with_newline = s + "\n";
  const auto lines = split_lines(with_newline);
  std::string out;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (i) out += '\n';
    if (i && (!lines[i].empty() || flag(p[2]))) out += by;
    out += lines[i];
    if (static_cast<i64>(out.size()) > budget()->most)
      throw Failure("the template's values take too much memory");
  }
  return text_like(v, flag(p[1]) ? by + out : out);
}

Value truncate(const Value& v, Arguments& a) {
  const auto p = bind("truncate", a, {"length", "killwords", "end", "leeway"});
  const std::string& s = need_text(v, "truncate");
  const std::string end = p[2] ? need_text(*p[2], "truncate: end") : "...";
  const i64 n = p[0] ? need_int(*p[0], "truncate: length") : 255;
  const i64 leeway = given(p[3]) ? need_int(*p[3], "truncate: leeway") : 5;
  if (n < code_points(end)) throw Failure(fmt::format("expected length >= {}, got {}", code_points(end), n));
  if (leeway < 0) throw Failure(fmt::format("expected leeway >= 0, got {}", leeway));
  if (code_points(s) <= n || code_points(s) - n <= leeway) return v;
  std::string cut = s.substr(0, byte_of(s, n - code_points(end)));
  if (!flag(p[1]))
    if (const std::size_t space = cut.rfind(' '); space != cut.npos) cut.resize(space);
  return Value(cut + end);
}

Value escape(const Value& v, Arguments& a) {
  bind("escape", a, {});
  if (v.markup()) return v;
  const Value plain(str(v));
  return binary("+", Value("", true), plain);
}

i64 word_count(const std::string& s) {
  i64 words = 0;
  bool inside = false;
  for (const char *p = s.data(), *end = p + s.size(); p < end;) {
    const char* from = p;
    next_code_point(p);
    const std::string_view c(from, static_cast<std::size_t>(p - from));
    const bool word = c == "_" || all_are(c, TextTest::alnum);
    words += word && !inside;
    inside = word;
  }
  return words;
}

Value items(const Value& v, Arguments& a) {
  bind("items", a, {});
  Values out;
  if (v.is(Kind::dict))
    for (const auto& [key, value] : v.map().entries) out.push_back(Value::tuple({key, value}));
  else if (!v.is(Kind::undefined))
    throw Failure("Can only get item pairs from a mapping.");
  return generator(std::move(out), "do_items");
}

Value replaced(const Value& v, Arguments& a) {
  const auto p = bind("replace", a, {"old", "new", "count"}, 2);
  return Value(replace(str(v), str(*p[0]), str(*p[1]), given(p[2]) ? need_int(*p[2], "replace: count") : -1));
}

template <std::string (*F)(std::string_view)>
Value text_filter(const Value& v, Arguments& a) {
  bind("lower", a, {});
  std::string s = soft(v);
  spend(static_cast<i64>(s.size() / 16));
  return text_like(v, F(s));
}

Value method_of_text(const char* name, const Value& v, Arguments& a) {
  const Value self = v.is_string() ? v : Value(str(v));
  return method(self, name).function().call(a);
}

Value tojson(const Value& v, Arguments& a) {
  const auto p = bind("tojson", a, {"ensure_ascii", "indent", "separators", "sort_keys"});
  return Value(
      to_json(v, flag(p[0]), p[1] ? *p[1] : Value::none(), p[2] ? *p[2] : Value::none(), flag(p[3])));
}

const std::map<std::string_view, Filter>& filters() {
  static const std::map<std::string_view, Filter> all = [] {
    std::map<std::string_view, Filter> f = {
        {"abs",
         [](const Value& v, Arguments& a) {
           bind("abs", a, {});
           need_defined(v);
           if (!v.is_number()) throw Failure(fmt::format("bad operand type for abs(): '{}'", type_name(v)));
           return v.number() < 0 ? negative(v)
                  : v.is_int()   ? Value(v.integer())
                                 : Value(std::abs(v.number()));
         }},
        {"attr",
         [](const Value& v, Arguments& a) {
           const std::string& name = need_text(*bind("attr", a, {"name"}, 1)[0], "attr");
           need_defined(v);
           return v.is(Kind::dict) ? method(v, name) : attribute(v, name);
         }},
        {"batch", batch},
        {"capitalize", text_filter<capitalize>},
        {"center",
         [](const Value& v, Arguments& a) {
           if (a.at.empty() && a.named.empty()) a.at.emplace_back(80);
           return method_of_text("center", v, a);
         }},
        {"default",
         [](const Value& v, Arguments& a) {
           const auto p = bind("default", a, {"default_value", "boolean"});
           if (v.is(Kind::undefined) || (flag(p[1]) && !truth(v))) return p[0] ? *p[0] : Value("");
           return v;
         }},
        {"dictsort", dictsort},
        {"escape", escape},
        {"first", [](const Value& v, Arguments& a) { return first_or_last(v, a, false); }},
        {"float", to_float},
        {"format",
         [](const Value& v, Arguments& a) {
           if (a.named.empty()) return Value(format_percent(soft(v), Value::tuple(a.at)));
           if (!a.at.empty()) throw Failure("can't handle positional and keyword arguments at the same time");
           auto d = std::make_shared<DictObject>();
           for (auto& [name, value] : a.named) d->set(Value(name), value);
           return Value(format_percent(soft(v), Value::dict(std::move(d))));
         }},
        {"groupby", groupby},
        {"indent", indent},
        {"int", to_int},
        {"items", items},
        {"join", join},
        {"last", [](const Value& v, Arguments& a) { return first_or_last(v, a, true); }},
        {"length",
         [](const Value& v, Arguments& a) {
           bind("length", a, {});
           return Value(length(v));
         }},
        {"list",
         [](const Value& v, Arguments& a) {
           bind("list", a, {});
           return Value::list(iterate(v));
         }},
        {"lower", text_filter<python_lower>},
        {"map", map},
        {"max", [](const Value& v, Arguments& a) { return extreme(v, a, true); }},
        {"min", [](const Value& v, Arguments& a) { return extreme(v, a, false); }},
        {"reject", [](const Value& v, Arguments& a) { return chosen(v, a, false, false); }},
        {"rejectattr", [](const Value& v, Arguments& a) { return chosen(v, a, false, true); }},
        {"replace", replaced},
        {"reverse", reverse},
        {"round", round_to},
        {"safe",
         [](const Value& v, Arguments& a) {
           bind("safe", a, {});
           return Value(str(v), true);
         }},
        {"select", [](const Value& v, Arguments& a) { return chosen(v, a, true, false); }},
        {"selectattr", [](const Value& v, Arguments& a) { return chosen(v, a, true, true); }},
        {"slice", sliced},
        {"sort", sort},
        {"string",
         [](const Value& v, Arguments& a) {
           bind("string", a, {});
           return v.is_string() ? v : Value(str(v));
         }},
        {"sum", sum},
        {"title", text_filter<title_filter>},
        {"tojson", tojson},
        {"trim", [](const Value& v, Arguments& a) { return method_of_text("strip", v, a); }},
        {"truncate", truncate},
        {"unique", unique},
        {"upper", text_filter<upper>},
        {"wordcount",
         [](const Value& v, Arguments& a) {
           bind("wordcount", a, {});
           return Value(word_count(soft(v)));
         }},
    };
    f["count"] = f["length"];
    f["d"] = f["default"];
    f["e"] = f["escape"];
    return f;
  }();
  return all;
}

// --- Tests ---

bool compared(const char* op, const Value& v, Arguments& a) {
  return compare(op, v, *bind(op, a, {"other"}, 1)[0]);
}

i64 integral_mod(const Value& v, i64 n) {
  const Value r = binary("%", v, Value(n));
  return r.is_int() ? r.integer() : r.number() == 0 ? 0 : r.number() == 1 ? 1 : -1;
}

bool is_iterable(const Value& v) {
  return v.is(Kind::undefined) || v.is_string() || v.is(Kind::dict) || v.has_items() || v.is(Kind::loop);
}

bool is_same(const Value& a, const Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.identity() || b.identity()) return a.identity() == b.identity() || (a.is_string() && equal(a, b));
  return equal(a, b);
}

const std::map<std::string_view, PlainTest>& plain_tests() {
  static const std::map<std::string_view, PlainTest> all = {
      {"boolean", [](const Value& v) { return v.is(Kind::boolean); }},
      {"callable", [](const Value& v) { return v.is(Kind::function) || v.is(Kind::loop); }},
      {"defined", [](const Value& v) { return !v.is(Kind::undefined); }},
      {"undefined", [](const Value& v) { return v.is(Kind::undefined); }},
      {"escaped", [](const Value& v) { return v.markup(); }},
      {"even", [](const Value& v) { return integral_mod(v, 2) == 0; }},
      {"odd", [](const Value& v) { return integral_mod(v, 2) == 1; }},
      {"false", [](const Value& v) { return v.is(Kind::boolean) && !v.boolean(); }},
      {"true", [](const Value& v) { return v.is(Kind::boolean) && v.boolean(); }},
      {"float", [](const Value& v) { return v.is(Kind::real); }},
      {"integer", [](const Value& v) { return v.is(Kind::integer); }},
      {"number", [](const Value& v) { return v.is_number(); }},
      {"iterable", is_iterable},
      {"lower", [](const Value& v) { return is_lower(str(v)); }},
      {"upper", [](const Value& v) { return is_upper(str(v)); }},
      {"mapping", [](const Value& v) { return v.is(Kind::dict); }},
      {"none", [](const Value& v) { return v.is(Kind::none); }},
      // A length and subscripts, which dicts have too.
      {"sequence",
       [](const Value& v) {
         return v.is(Kind::undefined) || v.is_string() || v.is(Kind::dict) || v.is(Kind::list) ||
                v.is(Kind::tuple) || v.is(Kind::range);
       }},
      {"string", [](const Value& v) { return v.is_string(); }},
  };
  return all;
}

const std::map<std::string_view, Test>& tests() {
  static const std::map<std::string_view, Test> all = [] {
    std::map<std::string_view, Test> t = {
        {"divisibleby",
         [](const Value& v, Arguments& a) {
           const Value r = binary("%", v, *bind("divisibleby", a, {"num"}, 1)[0]);
           return r.is_number() && r.number() == 0;
         }},
        {"filter",
         [](const Value& v, Arguments& a) {
           bind("filter", a, {});
           return filters().count(need_text(v, "filter")) > 0;
         }},
        {"test",
         [](const Value& v, Arguments& a) {
           bind("test", a, {});
           return has_test(need_text(v, "test"));
         }},
        {"in", [](const Value& v, Arguments& a) { return contains(*bind("in", a, {"seq"}, 1)[0], v); }},
        {"sameas",
         [](const Value& v, Arguments& a) { return is_same(v, *bind("sameas", a, {"other"}, 1)[0]); }},
        {"==", [](const Value& v, Arguments& a) { return compared("==", v, a); }},
        {"!=", [](const Value& v, Arguments& a) { return compared("!=", v, a); }},
        {"<", [](const Value& v, Arguments& a) { return compared("<", v, a); }},
        {"<=", [](const Value& v, Arguments& a) { return compared("<=", v, a); }},
        {">", [](const Value& v, Arguments& a) { return compared(">", v, a); }},
        {">=", [](const Value& v, Arguments& a) { return compared(">=", v, a); }},
    };
    t["eq"] = t["equalto"] = t["=="];
    t["ne"] = t["!="];
    t["lt"] = t["lessthan"] = t["<"];
    t["le"] = t["<="];
    t["gt"] = t["greaterthan"] = t[">"];
    t["ge"] = t[">="];
    return t;
  }();
  return all;
}

bool has_test(const std::string& name) { return plain_tests().count(name) || tests().count(name); }

}  // namespace

Value call_filter(const std::string& name, const Value& operand, Arguments& arguments) {
  auto it = filters().find(name);
  if (it == filters().end())
    throw Failure(fmt::format("the filter '{}' is not supported in chat templates", name.substr(0, 60)));
  return it->second(operand, arguments);
}

bool call_test(const std::string& name, const Value& operand, Arguments& arguments) {
  if (auto it = plain_tests().find(name); it != plain_tests().end()) {
    bind(name, arguments, {});
    return it->second(operand);
  }
  auto it = tests().find(name);
  if (it == tests().end())
    throw Failure(fmt::format("the test '{}' is not supported in chat templates", name.substr(0, 60)));
  return it->second(operand, arguments);
}

}  // namespace redco::jinja
