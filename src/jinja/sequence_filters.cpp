// Filters on sequences and mappings.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "jinja/filter_tables.h"
#include "jinja/filters.h"
#include "jinja/ops.h"
#include "jinja/text.h"
#include "unicode/python_text.h"

namespace redco::jinja {
namespace {

Value generator(Values items, const char* name) {
  return Value::sequence(Kind::generator, std::move(items), name);
}

Value folded(const Value& v) { return v.is_string() ? Value(python_lower(v.text())) : v; }

// --- Attribute paths: "a.b.0" ---

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
  // Python's reverse sort is stable too.
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
    out.push_back(Value::sequence(Kind::tuple, {g(items[i]), Value::list(std::move(group))}, kGroupLabel));
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
  const std::string between = p[0] ? str(*p[0]) : "";
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

Value items(const Value& v, Arguments& a) {
  bind("items", a, {});
  Values out;
  if (v.is(Kind::dict))
    for (const auto& [key, value] : v.map().entries) out.push_back(Value::tuple({key, value}));
  else if (!v.is(Kind::undefined))
    throw Failure("Can only get item pairs from a mapping.");
  return generator(std::move(out), "do_items");
}

}  // namespace

const FilterTable& sequence_filters() {
  static const FilterTable table = {
      {"batch", batch},
      {"dictsort", dictsort},
      {"first", [](const Value& v, Arguments& a) { return first_or_last(v, a, false); }},
      {"groupby", groupby},
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
      {"map", map},
      {"max", [](const Value& v, Arguments& a) { return extreme(v, a, true); }},
      {"min", [](const Value& v, Arguments& a) { return extreme(v, a, false); }},
      {"reject", [](const Value& v, Arguments& a) { return chosen(v, a, false, false); }},
      {"rejectattr", [](const Value& v, Arguments& a) { return chosen(v, a, false, true); }},
      {"reverse", reverse},
      {"select", [](const Value& v, Arguments& a) { return chosen(v, a, true, false); }},
      {"selectattr", [](const Value& v, Arguments& a) { return chosen(v, a, true, true); }},
      {"slice", sliced},
      {"sort", sort},
      {"sum", sum},
      {"unique", unique},
  };
  return table;
}

}  // namespace redco::jinja
