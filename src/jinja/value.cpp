#include "jinja/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "jinja/text.h"
#include "unicode/utf8.h"

namespace redco::jinja {
namespace {

thread_local Budget* g_budget = nullptr;

constexpr int kMaxNesting = 100;  // of values in values

}  // namespace

Budget* budget() { return g_budget; }

BudgetScope::BudgetScope(Budget* b) : before_(g_budget) { g_budget = b; }
BudgetScope::~BudgetScope() { g_budget = before_; }

void spend(i64 steps) {
  if (!g_budget) return;
  g_budget->steps -= steps;
  if (g_budget->steps < 0) throw Failure("the template takes too many steps");
}

Object::Object(i64 bytes) : budget_(g_budget), bytes_(0) { grow(bytes + 64); }

Object::~Object() {
  if (budget_) budget_->live -= bytes_;
}

void Object::grow(i64 bytes) {
  if (!budget_) return;
  spend(bytes / 64);
  if (budget_->live + bytes > budget_->most) throw Failure("the template's values take too much memory");
  budget_->live += bytes;
  bytes_ += bytes;
}

ListObject::ListObject(Values v, std::string l)
    : Object(static_cast<i64>(v.size() * sizeof(Value))), items(std::move(v)), label(std::move(l)) {
  for (const Value& i : items) depth = std::max(depth, 1 + i.depth());
  if (depth > kMaxNesting) throw Failure("values nested too deep");
}

LoopObject::LoopObject(Values v, const Node* n)
    : Object(static_cast<i64>(128 + v.size() * sizeof(Value))), items(std::move(v)), node(n) {
  for (const Value& i : items) depth = std::max(depth, 1 + i.depth());
  if (depth > kMaxNesting) throw Failure("values nested too deep");
}

Value::Value(std::string s, bool markup)
    : kind_(Kind::string), object_(std::make_shared<StringObject>(std::move(s), markup)) {}

Value Value::none() {
  Value v;
  v.kind_ = Kind::none;
  return v;
}

Value Value::undefined(std::string what) {
  Value v(std::move(what));
  v.kind_ = Kind::undefined;
  return v;
}

Value Value::sequence(Kind kind, Values items, std::string label) {
  Value v;
  v.object_ = std::make_shared<ListObject>(std::move(items), std::move(label));
  v.kind_ = kind;
  return v;
}

Value Value::dict(std::shared_ptr<DictObject> d) {
  Value v;
  v.kind_ = Kind::dict;
  v.object_ = std::move(d);
  return v;
}

Value Value::space(std::shared_ptr<DictObject> d) {
  Value v = dict(std::move(d));
  v.kind_ = Kind::space;
  return v;
}

Value Value::function(std::shared_ptr<FunctionObject> f) {
  Value v;
  v.kind_ = Kind::function;
  v.object_ = std::move(f);
  return v;
}

Value Value::loop(std::shared_ptr<LoopObject> l) {
  Value v;
  v.kind_ = Kind::loop;
  v.object_ = std::move(l);
  return v;
}

bool Value::markup() const { return is_string() && static_cast<const StringObject*>(object_.get())->markup; }
const std::string& Value::text() const { return static_cast<const StringObject*>(object_.get())->text; }
const Values& Value::items() const { return static_cast<const ListObject*>(object_.get())->items; }
const std::string& Value::label() const { return static_cast<const ListObject*>(object_.get())->label; }
const DictObject& Value::map() const { return *static_cast<const DictObject*>(object_.get()); }
DictObject& Value::space() const { return *static_cast<DictObject*>(object_.get()); }
const FunctionObject& Value::function() const { return *static_cast<const FunctionObject*>(object_.get()); }
LoopObject& Value::loop() const { return *static_cast<LoopObject*>(object_.get()); }

// --- Dicts ---

const Value* DictObject::find(const Value& key) const {
  auto it = index_.find(hash_key(key));
  return it == index_.end() ? nullptr : &entries[it->second].second;
}

const Value* DictObject::find(std::string_view name) const {
  auto it = index_.find("s" + std::string(name));
  return it == index_.end() ? nullptr : &entries[it->second].second;
}

void DictObject::set(Value key, Value value) {
  if (!is_space_) {
    depth = std::max({depth, 1 + key.depth(), 1 + value.depth()});
    if (depth > kMaxNesting) throw Failure("values nested too deep");
  }
  std::string canonical = hash_key(key);
  if (auto it = index_.find(canonical); it != index_.end()) {
    entries[it->second].second = std::move(value);
    return;
  }
  grow(static_cast<i64>(2 * sizeof(Value) + canonical.size() + 64));
  index_.emplace(std::move(canonical), entries.size());
  entries.emplace_back(std::move(key), std::move(value));
}

std::vector<const Value*> bind(const std::string& function, const Arguments& a,
                               std::initializer_list<const char*> names, std::size_t required) {
  std::vector<const Value*> out(names.size(), nullptr);
  if (a.at.size() > names.size())
    throw Failure(fmt::format("{}() takes at most {} arguments ({} given)", function, names.size(),
                              a.at.size() + a.named.size()));
  for (std::size_t i = 0; i < a.at.size(); ++i) out[i] = &a.at[i];
  for (const auto& [name, value] : a.named) {
    std::size_t i = 0;
    while (i < names.size() && name != names.begin()[i]) ++i;
    if (i == names.size())
      throw Failure(fmt::format("{}() got an unexpected keyword argument '{}'", function, name));
    if (out[i]) throw Failure(fmt::format("{}() got multiple values for argument '{}'", function, name));
    out[i] = &value;
  }
  for (std::size_t i = 0; i < required; ++i)
    if (!out[i]) throw Failure(fmt::format("{}() lacks its argument '{}'", function, names.begin()[i]));
  return out;
}

// --- Python's protocols ---

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
  if (a.is_string() && b.is_string()) return a.text() < b.text();  // UTF-8 sorts as its code points do
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

std::string float_repr(double d) {
  if (std::isnan(d)) return "nan";
  if (std::isinf(d)) return d < 0 ? "-inf" : "inf";
  // The shortest digits that give the number back; Python writes an exponent below 1e-4 and from 1e16 on.
  char buffer[64];
  const double size = std::abs(d);
  const bool exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, d,
                                 exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string s(buffer, end.ptr);
  if (!exponent && s.find('.') == s.npos) s += ".0";
  return s;
}

std::string string_repr(std::string_view s) {
  const char quote = s.find('\'') != s.npos && s.find('"') == s.npos ? '"' : '\'';
  std::string out(1, quote);
  for (const char *p = s.data(), *end = p + s.size(); p < end;) {
    const char* from = p;
    const char32_t c = next_code_point(p);
    if (c == static_cast<char32_t>(quote) || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\r') {
      out += "\\r";
    } else if (c == '\t') {
      out += "\\t";
    } else if (is_printable(c)) {
      out.append(from, p);
    } else {
      const auto n = static_cast<std::uint32_t>(c);
      out += n < 0x100     ? fmt::format("\\x{:02x}", n)
             : n < 0x10000 ? fmt::format("\\u{:04x}", n)
                           : fmt::format("\\U{:08x}", n);
    }
  }
  return out + quote;
}

namespace {

void append_repr(const Value& v, std::string& out, int depth) {
  if (depth > kMaxNesting) throw Failure("values nested too deep to be shown");
  spend(1);
  const std::size_t before = out.size();
  auto all = [&](const char* open, const Values& items, const char* close) {
    out += open;
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (i) out += ", ";
      append_repr(items[i], out, depth + 1);
    }
    out += close;
  };
  auto pairs = [&](const DictObject& d) {
    out += '{';
    bool first = true;
    for (const auto& [key, value] : d.entries) {
      if (!first) out += ", ";
      first = false;
      append_repr(key, out, depth + 1);
      out += ": ";
      append_repr(value, out, depth + 1);
    }
    out += '}';
  };
  switch (v.kind()) {
    case Kind::undefined:
      out += "Undefined";
      break;
    case Kind::none:
      out += "None";
      break;
    case Kind::boolean:
      out += v.boolean() ? "True" : "False";
      break;
    case Kind::integer:
      out += std::to_string(v.integer());
      break;
    case Kind::real:
      out += float_repr(v.number());
      break;
    case Kind::string:
      out += v.markup() ? "Markup(" + string_repr(v.text()) + ")" : string_repr(v.text());
      break;
    case Kind::list:
      all("[", v.items(), "]");
      break;
    case Kind::tuple:
      all("(", v.items(), v.items().size() == 1 ? ",)" : ")");
      break;
    case Kind::range:
      out += v.label();
      break;
    case Kind::view:
      out += v.label() + "(";
      all("[", v.items(), "])");
      break;
    case Kind::generator:
      out += "<generator object " + v.label() + ">";
      break;
    case Kind::dict:
      pairs(v.map());
      break;
    case Kind::space:
      out += "<Namespace ";
      pairs(v.map());
      out += '>';
      break;
    case Kind::function:
      out += "<function " + v.function().name + ">";
      break;
    case Kind::loop:
      out += fmt::format("<LoopContext {}/{}>", v.loop().at + 1, v.loop().items.size());
      break;
  }
  spend(static_cast<i64>(out.size() - before) / 64);
  if (budget() && static_cast<i64>(out.size()) > budget()->most)
    throw Failure("the template's values take too much memory");
}

}  // namespace

std::string repr(const Value& v) {
  std::string out;
  append_repr(v, out, 0);
  return out;
}

std::string str(const Value& v) {
  if (v.is_string()) return v.text();
  if (v.is(Kind::undefined)) return {};
  return repr(v);
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
