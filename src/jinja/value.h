// Values of templates, with Python's truth, equality, order and text.
//
// All values but namespaces are immutable, as the sandbox requires. So reference cycles need a namespace or
// the scope of a macro; ~Interpreter() breaks them. Strings are UTF-8; positions in them count code points,
// as in Python.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/types.h"

namespace redco::jinja {

// An error of a running template. Template::render adds the position.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& message) : std::runtime_error(message) {}
};

// The limits of one render. Values charge the budget of their thread, if it has one.
struct Budget {
  i64 steps;           // steps left: one per evaluated node, and one per 64 bytes or 4 elements created
  i64 live = 0, most;  // bytes of live values, and their limit
  int depth = 0;       // nesting depth of the evaluation
};
Budget* budget();
// Sets the thread's budget for the lifetime of the object.
class BudgetScope {
 public:
  explicit BudgetScope(Budget* b);
  ~BudgetScope();

 private:
  Budget* before_;
};
void spend(i64 steps);  // Failure if none are left

constexpr int kMaxNesting = 100;  // of nested values

enum class Kind : std::uint8_t {
  undefined,
  none,
  boolean,
  integer,
  real,
  string,
  list,
  tuple,
  range,      // a list of integers that prints as range(...)
  view,       // keys(), values(), items(): iterable, with a length, not indexable
  generator,  // map, select, ...: iterable, without a length
  dict,
  space,  // a namespace
  function,
  loop,
};

// Label of the tuples of the filter groupby, whose two items also have the names grouper and list.
inline constexpr const char* kGroupLabel = "group";

struct Node;
class Frame;
class Value;
using Values = std::vector<Value>;

// Base of heap objects: charges its size to the budget during its lifetime.
struct Object {
  explicit Object(i64 bytes);
  virtual ~Object();
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  void grow(i64 bytes);
  int depth = 1;  // nesting depth: 1 + that of the deepest element

 private:
  Budget* budget_;
  i64 bytes_;
};

struct StringObject;
struct ListObject;
struct DictObject;
struct FunctionObject;
struct LoopObject;

class Value {
 public:
  Value() = default;  // undefined
  Value(bool b) : kind_(Kind::boolean) { n_.i = b; }
  Value(i64 i) : kind_(Kind::integer) { n_.i = i; }
  Value(int i) : Value(static_cast<i64>(i)) {}
  Value(double d) : kind_(Kind::real) { n_.d = d; }
  Value(std::string s, bool markup = false);
  Value(std::string_view s) : Value(std::string(s)) {}
  Value(const char* s) : Value(std::string(s)) {}
  static Value none();
  // what: the error message of any use except printing and testing.
  static Value undefined(std::string what);
  static Value sequence(Kind kind, Values items, std::string label = {});
  static Value list(Values items) { return sequence(Kind::list, std::move(items)); }
  static Value tuple(Values items) { return sequence(Kind::tuple, std::move(items)); }
  static Value dict(std::shared_ptr<DictObject> d);
  static Value space(std::shared_ptr<DictObject> d);
  static Value function(std::shared_ptr<FunctionObject> f);
  static Value loop(std::shared_ptr<LoopObject> l);

  Kind kind() const { return kind_; }
  bool is(Kind k) const { return kind_ == k; }
  bool is_string() const { return kind_ == Kind::string; }
  // int includes bool, as in Python; number includes float.
  bool is_int() const { return kind_ == Kind::integer || kind_ == Kind::boolean; }
  bool is_number() const { return is_int() || kind_ == Kind::real; }
  bool has_items() const { return kind_ >= Kind::list && kind_ <= Kind::generator; }
  bool markup() const;  // a string from the filters `safe` or `escape`

  // Each of these REQUIRES its kind.
  bool boolean() const { return n_.i != 0; }
  i64 integer() const { return n_.i; }
  double number() const { return kind_ == Kind::real ? n_.d : static_cast<double>(n_.i); }
  const std::string& text() const;
  const Values& items() const;
  const std::string& label() const;  // of a range, generator or group
  const DictObject& map() const;     // a dict's or namespace's
  DictObject& space() const;
  const FunctionObject& function() const;
  LoopObject& loop() const;
  const Object* identity() const { return object_.get(); }
  int depth() const { return object_ ? object_->depth : 0; }

 private:
  Kind kind_ = Kind::undefined;
  union {
    i64 i;
    double d;
  } n_ = {0};
  std::shared_ptr<Object> object_;
};

struct StringObject : Object {
  StringObject(std::string s, bool m)
      : Object(static_cast<i64>(s.capacity())), text(std::move(s)), markup(m) {}
  std::string text;
  bool markup;
};

struct ListObject : Object {
  ListObject(Values v, std::string l);
  Values items;
  std::string label;
};

// A dict in insertion order, or the attributes of a namespace. Keys are the values that Python can hash.
struct DictObject : Object {
  explicit DictObject(bool is_space = false) : Object(128), is_space_(is_space) {}
  const Value* find(const Value& key) const;       // Failure for an unhashable key
  const Value* find(std::string_view name) const;  // by a text key
  void set(Value key, Value value);
  std::vector<std::pair<Value, Value>> entries;

 private:
  bool is_space_;  // not counted in depth: ~Interpreter() clears namespaces one by one
  std::map<std::string, std::size_t, std::less<>> index_;
};

struct Arguments {
  Values at;
  std::vector<std::pair<std::string, Value>> named;
};

struct FunctionObject : Object {
  // self_depth: nesting depth of the object that a method is bound to; `f` keeps the object.
  FunctionObject(std::string n, std::function<Value(Arguments&)> f, int self_depth = 0)
      : Object(128), name(std::move(n)), call(std::move(f)) {
    depth = 1 + self_depth;
  }
  std::string name;
  std::function<Value(Arguments&)> call;
};

// `loop` inside of a for block.
struct LoopObject : Object {
  LoopObject(Values v, const Node* n);
  Values items;
  i64 at = 0, depth0 = 0;
  std::string changed_from;     // repr of the last arguments of changed()
  const Node* node;             // the for block; loop(...) runs a recursive one again,
  std::weak_ptr<Frame> parent;  // in this frame
};

// A text that is safe markup if `like` is.
inline Value text_like(const Value& like, std::string text) { return Value(std::move(text), like.markup()); }

// Binds arguments to parameters: the values in the order of `names`, nullptr for missing ones. Failure for
// too many arguments, unknown or repeated names, and if one of the first `required` is missing.
std::vector<const Value*> bind(const std::string& function, const Arguments& a,
                               std::initializer_list<const char*> names, std::size_t required = 0);

// Python's bool(v), a == b, a < b (Failure where Python has no order), hash key.
bool truth(const Value& v);
bool equal(const Value& a, const Value& b);
bool less(const Value& a, const Value& b);
std::string hash_key(const Value& v);

std::string type_name(const Value& v);  // "str", as in Python's messages
std::string str(const Value& v);
std::string repr(const Value& v);
std::string float_repr(double d);
std::string string_repr(std::string_view s);

// The elements of an iterable: characters of a text, keys of a dict; none for undefined. Failure for other
// values.
Values iterate(const Value& v);
i64 length(const Value& v);

// Failure if `v` is undefined.
void need_defined(const Value& v);

}  // namespace redco::jinja
