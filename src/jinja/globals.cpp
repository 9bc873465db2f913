// The functions that every template has.
#include <fmt/format.h>

#include <ctime>

#include "jinja/interpreter.h"
#include "jinja/ops.h"

namespace redco::jinja {
namespace {

constexpr i64 kMaxRange = 100'000;  // the limit of jinja2's sandbox

Value make_range(Arguments& a) {
  if (a.at.empty() || a.at.size() > 3 || !a.named.empty()) throw Failure("range expects 1 to 3 numbers");
  i64 n[3];
  for (std::size_t i = 0; i < a.at.size(); ++i) n[i] = need_int(a.at[i], "range");
  const i64 start = a.at.size() > 1 ? n[0] : 0, stop = a.at.size() > 1 ? n[1] : n[0];
  const i64 step = a.at.size() > 2 ? n[2] : 1;
  if (step == 0) throw Failure("range() arg 3 must not be zero");
  Values items;
  for (__int128 i = start; step > 0 ? i < stop : i > stop; i += step) {
    if (static_cast<i64>(items.size()) == kMaxRange)
      throw Failure(fmt::format("Range too big. The sandbox blocks ranges larger than {}.", kMaxRange));
    items.emplace_back(static_cast<i64>(i));
  }
  return Value::sequence(Kind::range, std::move(items),
                         step == 1 ? fmt::format("range({}, {})", start, stop)
                                   : fmt::format("range({}, {}, {})", start, stop, step));
}

Value strftime_now(Arguments& a) {
  const std::string format = need_text(*bind("strftime_now", a, {"format"}, 1)[0], "strftime_now");
  if (format.size() > 1000) throw Failure("strftime_now: the format is too long");
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char buffer[8192];
  const std::size_t n = std::strftime(buffer, sizeof buffer, format.c_str(), &parts);
  return Value(std::string(buffer, n));
}

}  // namespace

void fill(DictObject& d, Arguments& a, const char* what) {
  if (a.at.size() > 1) throw Failure(fmt::format("{} expected at most 1 argument", what));
  if (!a.at.empty()) {
    need_defined(a.at[0]);
    if (a.at[0].is(Kind::dict)) {
      for (const auto& [key, value] : a.at[0].map().entries) d.set(key, value);
    } else {
      for (const Value& pair : iterate(a.at[0])) {
        Values two = iterate(pair);
        if (two.size() != 2) throw Failure(fmt::format("{} expected pairs of key and value", what));
        d.set(two[0], two[1]);
      }
    }
  }
  for (auto& [name, value] : a.named) d.set(Value(name), std::move(value));
}

void define_globals(Frame& globals) {
  auto define = [&](const char* name, auto f) {
    globals.set(name, Value::function(std::make_shared<FunctionObject>(name, f)));
  };
  define("range", make_range);
  define("strftime_now", strftime_now);
  define("raise_exception", [](Arguments& a) -> Value {
    throw Failure("the template refuses the conversation: " +
                  str(*bind("raise_exception", a, {"message"}, 1)[0]));
  });
  define("dict", [](Arguments& a) {
    auto d = std::make_shared<DictObject>();
    fill(*d, a, "dict");
    return Value::dict(std::move(d));
  });
}

}  // namespace redco::jinja
