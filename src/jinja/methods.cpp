// The methods of texts, dicts and lists.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/utf8.h"
#include "jinja/ops.h"
#include "jinja/text.h"
#include "unicode/python_text.h"

namespace redco::jinja {
namespace {

using Method = Value (*)(const Value& self, Arguments& a);
using Methods = std::map<std::string_view, Method>;

Values texts(const std::vector<std::string_view>& pieces, bool markup) {
  Values out;
  out.reserve(pieces.size());
  for (std::string_view p : pieces) out.emplace_back(std::string(p), markup);
  return out;
}

template <std::string_view (*F)(std::string_view, std::optional<std::string_view>)>
Value stripped(const Value& self, Arguments& a) {
  const Value* chars = bind("strip", a, {"chars"})[0];
  spend(static_cast<i64>(self.text().size() / 64));
  if (!chars || chars->is(Kind::none)) return text_like(self, std::string(F(self.text(), std::nullopt)));
  const std::string& set = need_text(*chars, "strip");
  spend_search(self.text(), set);
  return text_like(self, std::string(F(self.text(), set)));
}

Value split_method(const Value& self, Arguments& a, bool from_right) {
  const auto p = bind("split", a, {"sep", "maxsplit"});
  const i64 most = p[1] ? need_int(*p[1], "split: maxsplit") : -1;
  std::optional<std::string_view> separator;
  if (p[0] && !p[0]->is(Kind::none)) {
    separator = need_text(*p[0], "split: sep");
    if (separator->empty()) throw Failure("empty separator");
  }
  return Value::list(texts(split(self.text(), separator, most, from_right), self.markup()));
}

// self[start:end] in code points, for the methods that search; `from` gets its byte offset.
std::string_view part(const Value& self, const Value* start, const Value* end, std::size_t* from) {
  const i64 n = code_points(self.text());
  auto clamp = [&](const Value* v, i64 otherwise) {
    if (!v || v->is(Kind::none)) return otherwise;
    const i64 i = need_int(*v, "a position");
    return i < 0 ? std::max<i64>(i < -n ? 0 : i + n, 0) : std::min(i, n);
  };
  *from = byte_of(self.text(), clamp(start, 0));
  const std::size_t to = std::max(*from, byte_of(self.text(), clamp(end, n)));
  return std::string_view(self.text()).substr(*from, to - *from);
}

i64 find_text(const Value& self, Arguments& a, bool last) {
  const auto p = bind("find", a, {"sub", "start", "end"}, 1);
  std::size_t from = 0;
  const std::string_view inside = part(self, p[1], p[2], &from);
  const std::string& what = need_text(*p[0], "find");
  spend_search(inside, what);
  const std::size_t at = last ? inside.rfind(what) : inside.find(what);
  return at == inside.npos ? -1 : code_points(std::string_view(self.text()).substr(0, from + at));
}

bool has_affix(const Value& self, Arguments& a, bool suffix) {
  const auto p = bind(suffix ? "endswith" : "startswith", a, {"prefix", "start", "end"}, 1);
  std::size_t from = 0;
  const std::string_view inside = part(self, p[1], p[2], &from);
  auto is = [&](const Value& v) {
    const std::string& affix = need_text(v, "startswith");
    return suffix ? inside.ends_with(affix) : inside.starts_with(affix);
  };
  if (!p[0]->is(Kind::tuple)) return is(*p[0]);
  return std::any_of(p[0]->items().begin(), p[0]->items().end(), is);
}

Value padded_text(const Value& self, Arguments& a, int side) {
  const auto p = bind("center", a, {"width", "fillchar"}, 1);
  const i64 missing = need_int(*p[0], "width") - code_points(self.text());
  const std::string fill = p[1] ? need_text(*p[1], "fillchar") : " ";
  if (code_points(fill) != 1) throw Failure("The fill character must be exactly one character long");
  if (missing <= 0) return self;
  if (missing > budget()->most / 4) throw Failure("the template's values take too much memory");
  // With an odd width, Python's center() puts the odd space on the left.
  const i64 left = side < 0 ? 0 : side > 0 ? missing : missing / 2 + (missing & need_int(*p[0], "width") & 1);
  std::string out;
  for (i64 i = 0; i < left; ++i) out += fill;
  out += self.text();
  for (i64 i = left; i < missing; ++i) out += fill;
  return text_like(self, std::move(out));
}

Value partition(const Value& self, Arguments& a, bool last) {
  const std::string& sep = need_text(*bind("partition", a, {"sep"}, 1)[0], "partition");
  if (sep.empty()) throw Failure("empty separator");
  const std::string& s = self.text();
  spend_search(s, sep);
  const std::size_t at = last ? s.rfind(sep) : s.find(sep);
  if (at == s.npos)
    return last ? Value::tuple({Value(""), Value(""), self}) : Value::tuple({self, Value(""), Value("")});
  return Value::tuple({Value(s.substr(0, at)), Value(sep), Value(s.substr(at + sep.size()))});
}

template <TextTest T>
Value tested(const Value& self, Arguments& a) {
  bind("is...", a, {});
  return Value(all_are(self.text(), T));
}

template <std::string (*F)(std::string_view)>
Value text_method(const Value& self, Arguments& a) {
  bind("lower", a, {});
  spend(static_cast<i64>(self.text().size() / 16));
  return text_like(self, F(self.text()));
}

const Methods& text_methods() {
  static const Methods methods = {
      {"strip", stripped<strip>},
      {"lstrip", stripped<strip_left>},
      {"rstrip", stripped<strip_right>},
      {"split", [](const Value& s, Arguments& a) { return split_method(s, a, false); }},
      {"rsplit", [](const Value& s, Arguments& a) { return split_method(s, a, true); }},
      {"splitlines",
       [](const Value& s, Arguments& a) {
         const Value* keep = bind("splitlines", a, {"keepends"})[0];
         return Value::list(texts(split_lines(s.text(), keep && truth(*keep)), s.markup()));
       }},
      {"startswith", [](const Value& s, Arguments& a) { return Value(has_affix(s, a, false)); }},
      {"endswith", [](const Value& s, Arguments& a) { return Value(has_affix(s, a, true)); }},
      {"removeprefix",
       [](const Value& s, Arguments& a) {
         const std::string& affix = need_text(*bind("removeprefix", a, {"prefix"}, 1)[0], "removeprefix");
         return text_like(s, s.text().starts_with(affix) ? s.text().substr(affix.size()) : s.text());
       }},
      {"removesuffix",
       [](const Value& s, Arguments& a) {
         const std::string& affix = need_text(*bind("removesuffix", a, {"suffix"}, 1)[0], "removesuffix");
         return text_like(
             s, s.text().ends_with(affix) ? s.text().substr(0, s.text().size() - affix.size()) : s.text());
       }},
      {"find", [](const Value& s, Arguments& a) { return Value(find_text(s, a, false)); }},
      {"rfind", [](const Value& s, Arguments& a) { return Value(find_text(s, a, true)); }},
      {"index",
       [](const Value& s, Arguments& a) {
         const i64 at = find_text(s, a, false);
         if (at < 0) throw Failure("substring not found");
         return Value(at);
       }},
      {"rindex",
       [](const Value& s, Arguments& a) {
         const i64 at = find_text(s, a, true);
         if (at < 0) throw Failure("substring not found");
         return Value(at);
       }},
      {"count",
       [](const Value& s, Arguments& a) {
         const auto p = bind("count", a, {"sub", "start", "end"}, 1);
         std::size_t from = 0;
         const std::string_view inside = part(s, p[1], p[2], &from);
         const std::string& what = need_text(*p[0], "count");
         if (what.empty()) return Value(code_points(inside) + 1);
         spend_search(inside, what);
         i64 n = 0;
         for (std::size_t at = 0; (at = inside.find(what, at)) != inside.npos; at += what.size()) ++n;
         return Value(n);
       }},
      {"replace",
       [](const Value& s, Arguments& a) {
         const auto p = bind("replace", a, {"old", "new", "count"}, 2);
         return text_like(s, replace(s.text(), need_text(*p[0], "replace"), need_text(*p[1], "replace"),
                                     p[2] ? need_int(*p[2], "replace: count") : -1));
       }},
      {"join",
       [](const Value& s, Arguments& a) {
         const Values all = iterate(*bind("join", a, {"iterable"}, 1)[0]);
         std::string out;
         for (std::size_t i = 0; i < all.size(); ++i) {
           if (!all[i].is_string())
             throw Failure(
                 fmt::format("sequence item {}: expected str instance, {} found", i, type_name(all[i])));
           if (i) out += s.text();
           out += all[i].text();
           if (static_cast<i64>(out.size()) > budget()->most)
             throw Failure("the template's values take too much memory");
         }
         return text_like(s, std::move(out));
       }},
      {"lower", text_method<python_lower>},
      {"upper", text_method<upper>},
      {"title", text_method<title>},
      {"capitalize", text_method<capitalize>},
      {"swapcase", text_method<swapcase>},
      {"isalpha", tested<TextTest::alpha>},
      {"isdigit", tested<TextTest::digit>},
      {"isdecimal", tested<TextTest::decimal>},
      {"isalnum", tested<TextTest::alnum>},
      {"isspace", tested<TextTest::space>},
      {"isascii", tested<TextTest::ascii>},
      {"isprintable", tested<TextTest::printable>},
      {"islower",
       [](const Value& s, Arguments& a) {
         bind("islower", a, {});
         return Value(is_lower(s.text()));
       }},
      {"isupper",
       [](const Value& s, Arguments& a) {
         bind("isupper", a, {});
         return Value(is_upper(s.text()));
       }},
      {"center", [](const Value& s, Arguments& a) { return padded_text(s, a, 0); }},
      {"ljust", [](const Value& s, Arguments& a) { return padded_text(s, a, -1); }},
      {"rjust", [](const Value& s, Arguments& a) { return padded_text(s, a, 1); }},
      {"zfill",
       [](const Value& s, Arguments& a) {
         const i64 missing = need_int(*bind("zfill", a, {"width"}, 1)[0], "zfill") - code_points(s.text());
         if (missing <= 0) return s;
         if (missing > budget()->most / 4) throw Failure("the template's values take too much memory");
         const bool sign = s.text().starts_with('-') || s.text().starts_with('+');
         std::string out = s.text();
         out.insert(sign ? 1 : 0, std::string(static_cast<std::size_t>(missing), '0'));
         return Value(std::move(out));
       }},
      {"partition", [](const Value& s, Arguments& a) { return partition(s, a, false); }},
      {"rpartition", [](const Value& s, Arguments& a) { return partition(s, a, true); }},
      {"format", [](const Value& s, Arguments& a) { return text_like(s, format_braces(s.text(), a)); }},
  };
  return methods;
}

Value view(const Value& dict, const char* label, Value (*of)(const std::pair<Value, Value>&)) {
  Values out;
  for (const auto& e : dict.map().entries) out.push_back(of(e));
  return Value::sequence(Kind::view, std::move(out), label);
}

const Methods& dict_methods() {
  static const Methods methods = {
      {"items",
       [](const Value& d, Arguments& a) {
         bind("items", a, {});
         return view(d, "dict_items", [](const auto& e) { return Value::tuple({e.first, e.second}); });
       }},
      {"keys",
       [](const Value& d, Arguments& a) {
         bind("keys", a, {});
         return view(d, "dict_keys", [](const auto& e) { return e.first; });
       }},
      {"values",
       [](const Value& d, Arguments& a) {
         bind("values", a, {});
         return view(d, "dict_values", [](const auto& e) { return e.second; });
       }},
      {"get",
       [](const Value& d, Arguments& a) {
         if (!a.named.empty()) throw Failure("dict.get() takes no keyword arguments");
         const auto p = bind("get", a, {"key", "default"}, 1);
         const Value* v = d.map().find(*p[0]);
         return v ? *v : p[1] ? *p[1] : Value::none();
       }},
      {"copy",
       [](const Value& d, Arguments& a) {
         bind("copy", a, {});
         return d;  // dicts are immutable, so no copy is needed
       }},
  };
  return methods;
}

Value list_index(const Value& self, Arguments& a) {
  const auto p = bind("index", a, {"value", "start", "stop"}, 1);
  const auto n = static_cast<i64>(self.items().size());
  auto clamp = [&](const Value* v, i64 otherwise) {
    if (!v) return otherwise;
    const i64 i = need_int(*v, "index");
    return i < 0 ? std::max<i64>(i < -n ? 0 : i + n, 0) : std::min(i, n);
  };
  const i64 to = clamp(p[2], n);
  for (i64 i = clamp(p[1], 0); i < to; ++i)
    if (equal(self.items()[static_cast<std::size_t>(i)], *p[0])) return Value(i);
  throw Failure(repr(*p[0]).substr(0, 200) + " is not in list");
}

const Methods& list_methods() {
  static const Methods methods = {
      {"count",
       [](const Value& l, Arguments& a) {
         const Value& what = *bind("count", a, {"value"}, 1)[0];
         i64 n = 0;
         for (const Value& v : l.items()) n += equal(v, what);
         return Value(n);
       }},
      {"index", list_index},
      {"copy",
       [](const Value& l, Arguments& a) {
         bind("copy", a, {});
         return l;
       }},
  };
  return methods;
}

bool is_one_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::any_of(names.begin(), names.end(), [&](const char* n) { return name == n; });
}

}  // namespace

Value method(const Value& object, const std::string& name) {
  const Methods* methods = nullptr;
  bool forbidden = false, missing = false;
  switch (object.kind()) {
    case Kind::string:
      methods = &text_methods();
      missing = is_one_of(name, {"encode", "casefold", "expandtabs", "format_map", "isidentifier",
                                 "isnumeric", "istitle", "maketrans", "translate"});
      break;
    case Kind::dict:
      methods = &dict_methods();
      forbidden = is_one_of(name, {"clear", "pop", "popitem", "setdefault", "update"});
      missing = name == "fromkeys";
      break;
    case Kind::list:
      methods = &list_methods();
      forbidden =
          is_one_of(name, {"append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"});
      break;
    case Kind::tuple:
    case Kind::range:
      methods = &list_methods();
      if (name == "copy") return {};
      break;
    default:
      return {};
  }
  if (missing)
    throw Failure(fmt::format("{}.{}() is not supported in chat templates", type_name(object), name));
  if (forbidden)
    return Value::function(
        std::make_shared<FunctionObject>(name, [name, type = type_name(object)](Arguments&) -> Value {
          throw Failure(fmt::format("{}.{}() changes a value, which is forbidden in templates", type, name));
        }));
  auto it = methods->find(name);
  if (it == methods->end()) return {};
  return Value::function(std::make_shared<FunctionObject>(
      name, [f = it->second, object](Arguments& a) { return f(object, a); }, object.depth()));
}

bool parse_int(std::string_view text, i64 base, i64* out) {
  std::string_view t = strip(text);
  const bool negative = t.starts_with('-');
  if (negative || t.starts_with('+')) t.remove_prefix(1);
  auto prefixed = [&](char letter, i64 b) {
    if ((base == b || base == 0) && t.size() > 2 && t[0] == '0' && (t[1] | 0x20) == letter) {
      t.remove_prefix(2);
      if (t.starts_with('_')) t.remove_prefix(1);
      base = b;
    }
  };
  if (base != 0 && (base < 2 || base > 36)) throw Failure("int() base must be >= 2 and <= 36, or 0");
  prefixed('x', 16);
  prefixed('o', 8);
  prefixed('b', 2);
  if (base == 0) base = 10;
  std::string digits(negative ? "-" : "");
  for (std::size_t i = 0; i < t.size(); ++i) {
    if (t[i] == '_' && i > 0 && i + 1 < t.size() && t[i - 1] != '_') continue;
    digits += t[i];
  }
  if (t.empty() || t[0] == '-' || t[0] == '+') return false;
  const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), *out, static_cast<int>(base));
  if (r.ec == std::errc::result_out_of_range) throw Failure("a number beyond 64 bits");
  return r.ec == std::errc() && r.ptr == digits.data() + digits.size();
}

bool parse_float(std::string_view text, double* out) {
  std::string_view t = strip(text);
  if (t.starts_with('+')) {
    t.remove_prefix(1);
    if (t.starts_with('-')) return false;
  }
  if (t.empty()) return false;
  const auto r = std::from_chars(t.data(), t.data() + t.size(), *out);
  if (r.ec == std::errc::result_out_of_range) {
    *out = std::strtod(std::string(t).c_str(), nullptr);
    return true;
  }
  return r.ec == std::errc() && r.ptr == t.data() + t.size();
}

}  // namespace redco::jinja
