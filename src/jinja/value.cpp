#include "jinja/value.h"

#include <fmt/format.h>

#include <algorithm>

namespace redco::jinja {
namespace {

thread_local Budget* g_budget = nullptr;

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

}  // namespace redco::jinja
