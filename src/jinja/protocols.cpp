// Python's protocols: bool(), ==, <, hash(), type(), iter(), len().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/utf8.h"
#include "jinja/text.h"
#include "jinja/value.h"

namespace redco::jinja {

void need_defined(const Value& v) {
  if (!v.is(Kind::undefined)) return;
  throw Failure(v.identity() ? v.text() : "undefined value");
}

bool truth(const Value& v) {
  switch (v.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return v.integer() != 0;
    case Kind::real:
      return v.number() != 0;
    case Kind::string:
      return !v.text().empty();
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
    case Kind::view:
      return !v.items().empty();
    case Kind::dict:
      return !v.map().entries.empty();
    case Kind::generator:
    case Kind::space:
    case Kind::function:
    case Kind::loop:
      return true;
  }
  return false;
}

bool equal(const Value& a, const Value& b) {
  spend(1);
  if (a.is_number() && b.is_number())
    return a.is_int() && b.is_int() ? a.integer() == b.integer() : a.number() == b.number();
  if (a.kind() != b.kind()) return false;
  switch (a.kind()) {
    case Kind::undefined:
    case Kind::none:
      return true;
    case Kind::string:
      spend(static_cast<i64>(a.text().size() / 64));
      return a.text() == b.text();
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
      if (a.items().size() != b.items().size()) return false;
      for (std::size_t i = 0; i < a.items().size(); ++i)
        if (!equal(a.items()[i], b.items()[i])) return false;
      return true;
    case Kind::dict:
      if (a.map().entries.size() != b.map().entries.size()) return false;
      for (const auto& [key, value] : a.map().entries) {
        const Value* other = b.map().find(key);
        if (!other || !equal(value, *other)) return false;
      }
      return true;
    default:
      return a.identity() == b.identity();
  }
}

bool less(const Value& a, const Value& b) {
  spend(1);
  need_defined(a);
  need_defined(b);
  if (a.is_number() && b.is_number())
    return a.is_int() && b.is_int() ? a.integer() < b.integer() : a.number() < b.number();
  if (a.is_string() && b.is_string())
    return a.text() < b.text();  // UTF-8 sorts in the order of its code points
  if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    for (std::size_t i = 0; i < std::min(a.items().size(), b.items().size()); ++i)
      if (!equal(a.items()[i], b.items()[i])) return less(a.items()[i], b.items()[i]);
    return a.items().size() < b.items().size();
  }
  throw Failure(
      fmt::format("'<' not supported between instances of '{}' and '{}'", type_name(a), type_name(b)));
}

std::string hash_key(const Value& v) {
  switch (v.kind()) {
    case Kind::undefined:
      return "u";
    case Kind::none:
      return "n";
    case Kind::boolean:
    case Kind::integer:
      return "i" + std::to_string(v.integer());
    case Kind::real:
      if (v.number() == std::floor(v.number()) && std::abs(v.number()) < 9e18)
        return "i" + std::to_string(static_cast<i64>(v.number()));
      return "f" + float_repr(v.number());
    case Kind::string:
      return "s" + v.text();
    case Kind::tuple: {
      std::string key = "t";
      for (const Value& i : v.items()) {
        const std::string k = hash_key(i);
        key += std::to_string(k.size()) + ":" + k;
      }
      spend(static_cast<i64>(key.size()) / 64);
      if (key.size() > (1 << 20)) throw Failure("a tuple too large for a key");
      return key;
    }
    case Kind::list:
    case Kind::dict:
      throw Failure(fmt::format("unhashable type: '{}'", type_name(v)));
    default:
      return fmt::format("o{}", fmt::ptr(v.identity()));
  }
}

std::string type_name(const Value& v) {
  switch (v.kind()) {
    case Kind::undefined:
      return "Undefined";
    case Kind::none:
      return "NoneType";
    case Kind::boolean:
      return "bool";
    case Kind::integer:
      return "int";
    case Kind::real:
      return "float";
    case Kind::string:
      return v.markup() ? "Markup" : "str";
    case Kind::list:
      return "list";
    case Kind::tuple:
      return "tuple";
    case Kind::range:
      return "range";
    case Kind::view:
      return v.label();
    case Kind::generator:
      return "generator";
    case Kind::dict:
      return "dict";
    case Kind::space:
      return "Namespace";
    case Kind::function:
      return "function";
    case Kind::loop:
      return "LoopContext";
  }
  return "?";
}

Values iterate(const Value& v) {
  switch (v.kind()) {
    case Kind::undefined:
      return {};
    case Kind::string: {
      Values out;
      const std::string& s = v.text();
      spend(static_cast<i64>(s.size()));
      if (budget() && budget()->live + static_cast<i64>(s.size()) * 150 > budget()->most)
        throw Failure("the template's values take too much memory");
      for (const char *p = s.data(), *end = p + s.size(); p < end;) {
        const char* from = p;
        next_code_point(p);
        out.emplace_back(std::string(from, p));
      }
      return out;
    }
    case Kind::dict: {
      Values out;
      spend(static_cast<i64>(v.map().entries.size()) / 4);
      for (const auto& e : v.map().entries) out.push_back(e.first);
      return out;
    }
    case Kind::loop:
    case Kind::space:
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::real:
    case Kind::function:
      throw Failure(fmt::format("'{}' object is not iterable", type_name(v)));
    default:
      spend(static_cast<i64>(v.items().size()) / 4);
      return v.items();
  }
}

i64 length(const Value& v) {
  switch (v.kind()) {
    case Kind::undefined:
      return 0;
    case Kind::string:
      return code_points(v.text());
    case Kind::dict:
      return static_cast<i64>(v.map().entries.size());
    case Kind::loop:
      return static_cast<i64>(v.loop().items.size());
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
    case Kind::view:
      return static_cast<i64>(v.items().size());
    default:
      throw Failure(fmt::format("object of type '{}' has no len()", type_name(v)));
  }
}

}  // namespace redco::jinja
