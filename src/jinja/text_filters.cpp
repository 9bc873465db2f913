// Filters on texts.
#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "jinja/filter_tables.h"
#include "jinja/ops.h"
#include "jinja/text.h"
#include "unicode/python_text.h"

namespace redco::jinja {
namespace {

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

Value replaced(const Value& v, Arguments& a) {
  const auto p = bind("replace", a, {"old", "new", "count"}, 2);
  return Value(replace(str(v), str(*p[0]), str(*p[1]), given(p[2]) ? need_int(*p[2], "replace: count") : -1));
}

template <std::string (*F)(std::string_view)>
Value text_filter(const Value& v, Arguments& a) {
  bind("lower", a, {});
  std::string s = str(v);
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

}  // namespace

const FilterTable& text_filters() {
  static const FilterTable table = {
      {"capitalize", text_filter<capitalize>},
      {"center",
       [](const Value& v, Arguments& a) {
         if (a.at.empty() && a.named.empty()) a.at.emplace_back(80);
         return method_of_text("center", v, a);
       }},
      {"escape", escape},
      {"format",
       [](const Value& v, Arguments& a) {
         if (a.named.empty()) return Value(format_percent(str(v), Value::tuple(a.at)));
         if (!a.at.empty()) throw Failure("can't handle positional and keyword arguments at the same time");
         auto d = std::make_shared<DictObject>();
         for (auto& [name, value] : a.named) d->set(Value(name), value);
         return Value(format_percent(str(v), Value::dict(std::move(d))));
       }},
      {"indent", indent},
      {"lower", text_filter<python_lower>},
      {"replace", replaced},
      {"safe",
       [](const Value& v, Arguments& a) {
         bind("safe", a, {});
         return Value(str(v), true);
       }},
      {"string",
       [](const Value& v, Arguments& a) {
         bind("string", a, {});
         return v.is_string() ? v : Value(str(v));
       }},
      {"title", text_filter<title_filter>},
      {"tojson", tojson},
      {"trim", [](const Value& v, Arguments& a) { return method_of_text("strip", v, a); }},
      {"truncate", truncate},
      {"upper", text_filter<upper>},
      {"wordcount",
       [](const Value& v, Arguments& a) {
         bind("wordcount", a, {});
         return Value(word_count(str(v)));
       }},
  };
  return table;
}

}  // namespace redco::jinja
