// The tests: `value is name(arguments)`.
#include <fmt/format.h>

#include <map>

#include "jinja/filters.h"
#include "jinja/ops.h"
#include "jinja/text.h"

namespace redco::jinja {
namespace {

using PlainTest = bool (*)(const Value& v);  // without arguments
using Test = bool (*)(const Value& v, Arguments& a);

bool has_test(const std::string& name);

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
      // Values with a length and subscripts, including dicts.
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
           return has_filter(need_text(v, "filter"));
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
