#include "jinja/filters.h"

#include <fmt/format.h>

#include "jinja/filter_tables.h"
#include "jinja/ops.h"

namespace redco::jinja {
namespace {

const FilterTable& filters() {
  static const FilterTable all = [] {
    FilterTable f = {
        {"attr",
         [](const Value& v, Arguments& a) {
           const std::string& name = need_text(*bind("attr", a, {"name"}, 1)[0], "attr");
           need_defined(v);
           return v.is(Kind::dict) ? method(v, name) : attribute(v, name);
         }},
        {"default",
         [](const Value& v, Arguments& a) {
           const auto p = bind("default", a, {"default_value", "boolean"});
           if (v.is(Kind::undefined) || (flag(p[1]) && !truth(v))) return p[0] ? *p[0] : Value("");
           return v;
         }},
    };
    for (const FilterTable* more : {&sequence_filters(), &number_filters(), &text_filters()})
      f.insert(more->begin(), more->end());
    f["count"] = f["length"];
    f["d"] = f["default"];
    f["e"] = f["escape"];
    return f;
  }();
  return all;
}

}  // namespace

bool has_filter(const std::string& name) { return filters().count(name) > 0; }

Value call_filter(const std::string& name, const Value& operand, Arguments& arguments) {
  auto it = filters().find(name);
  if (it == filters().end())
    throw Failure(fmt::format("the filter '{}' is not supported in chat templates", name.substr(0, 60)));
  return it->second(operand, arguments);
}

}  // namespace redco::jinja
