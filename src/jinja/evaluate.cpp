// Expressions.
#include <fmt/format.h>

#include "base/error.h"
#include "jinja/filters.h"
#include "jinja/interpreter.h"
#include "jinja/ops.h"

namespace redco::jinja {
namespace {

std::string object_name(const Value& v) {
  return v.is(Kind::none) ? "None" : v.is(Kind::space) ? "namespace" : type_name(v) + " object";
}

}  // namespace

Arguments Interpreter::arguments(const Node& n, std::size_t first) {
  Arguments a;
  for (std::size_t i = 0; i < n.names.size(); ++i) {
    Value v = evaluate(*n.kids[first + i]);
    if (n.names[i].empty()) {
      a.at.push_back(std::move(v));
    } else if (n.names[i] == "*") {
      for (Value& each : iterate(v)) a.at.push_back(std::move(each));
    } else if (n.names[i] == "**") {
      if (!v.is(Kind::dict)) throw Failure("** expects a mapping");
      for (const auto& [key, value] : v.map().entries) a.named.emplace_back(need_text(key, "**"), value);
    } else {
      a.named.emplace_back(n.names[i], std::move(v));
    }
  }
  return a;
}

Value Interpreter::evaluate(const Node& n) {
  Level level;
  spend(1);
  at_ = n.at;
  switch (n.kind) {
    case NodeKind::constant:
      return n.value;
    case NodeKind::name:
      return variable(n);
    case NodeKind::list:
      return Value::list(all(n));
    case NodeKind::tuple:
      return Value::tuple(all(n));
    case NodeKind::dict:
      return dict(n);
    case NodeKind::attribute: {
      const Value object = evaluate(*n.kids[0]);
      at_ = n.at;
      return attribute_of(object, n.text);
    }
    case NodeKind::item:
      return item_of(n);
    case NodeKind::call: {
      const Value f = evaluate(*n.kids[0]);
      Arguments a = arguments(n, 1);
      at_ = n.at;
      return invoke(f, a);
    }
    case NodeKind::filter: {
      const Value operand = evaluate(*n.kids[0]);
      Arguments a = arguments(n, 1);
      at_ = n.at;
      return call_filter(n.text, operand, a);
    }
    case NodeKind::test: {
      const Value operand = evaluate(*n.kids[0]);
      Arguments a = arguments(n, 1);
      at_ = n.at;
      return Value(call_test(n.text, operand, a) != n.flag);
    }
    case NodeKind::unary: {
      const Value v = evaluate(*n.kids[0]);
      at_ = n.at;
      need_defined(v);
      if (!v.is_number())
        throw Failure(fmt::format("bad operand type for unary {}: '{}'", n.text, type_name(v)));
      return n.text == "-" ? negative(v) : v.is_int() ? Value(v.integer()) : v;
    }
    case NodeKind::not_:
      return Value(!truth(evaluate(*n.kids[0])));
    case NodeKind::binary: {
      const Value a = evaluate(*n.kids[0]);
      const Value b = evaluate(*n.kids[1]);
      at_ = n.at;
      return binary(n.text, a, b);
    }
    case NodeKind::concat:
      return concat(n);
    case NodeKind::compare:
      return chain(n);
    case NodeKind::and_: {
      Value a = evaluate(*n.kids[0]);
      return truth(a) ? evaluate(*n.kids[1]) : a;
    }
    case NodeKind::or_: {
      Value a = evaluate(*n.kids[0]);
      return truth(a) ? a : evaluate(*n.kids[1]);
    }
    case NodeKind::conditional:
      if (truth(evaluate(*n.kids[0]))) return evaluate(*n.kids[1]);
      if (n.kids[2]) return evaluate(*n.kids[2]);
      return Value::undefined("the inline if-expression evaluated to false and no else section was defined");
    default:
      REDCO_CHECK(false, "no expression");
  }
}

Value Interpreter::variable(const Node& n) {
  if (const Value* v = frame_->find(n.text)) return *v;
  for (const char* other : {"lipsum", "cycler", "joiner"})
    if (n.text == other)
      throw Failure(fmt::format("the function {} is not supported in chat templates", n.text));
  return Value::undefined(fmt::format("'{}' is undefined", n.text));
}

Value Interpreter::attribute_of(const Value& object, const std::string& name) {
  Value v = attribute(object, name);
  if (v.is(Kind::undefined) && !v.identity())
    return Value::undefined(fmt::format("'{}' has no attribute '{}'", object_name(object), name));
  return v;
}

Value Interpreter::item_of(const Node& n) {
  const Value object = evaluate(*n.kids[0]);
  const Node& key = *n.kids[1];
  if (key.kind == NodeKind::slice) {
    Value parts[3] = {Value::none(), Value::none(), Value::none()};
    for (std::size_t i = 0; i < 3; ++i)
      if (key.kids[i]) parts[i] = evaluate(*key.kids[i]);
    at_ = n.at;
    return slice(object, parts[0], parts[1], parts[2]);
  }
  const Value k = evaluate(key);
  at_ = n.at;
  Value v = item(object, k);
  if (v.is(Kind::undefined) && !v.identity())
    return Value::undefined(fmt::format("'{}' has no {} {}", object_name(object),
                                        k.is_string() ? "attribute" : "element", repr(k).substr(0, 200)));
  return v;
}

Values Interpreter::all(const Node& n) {
  Values out;
  out.reserve(n.kids.size());
  for (const NodePtr& k : n.kids) out.push_back(evaluate(*k));
  return out;
}

Value Interpreter::dict(const Node& n) {
  auto d = std::make_shared<DictObject>();
  for (std::size_t i = 0; i < n.kids.size(); i += 2) {
    Value key = evaluate(*n.kids[i]);
    d->set(std::move(key), evaluate(*n.kids[i + 1]));
  }
  return Value::dict(std::move(d));
}

Value Interpreter::concat(const Node& n) {
  std::string text;
  for (const NodePtr& k : n.kids) {
    const Value v = evaluate(*k);
    text += v.is_string() ? v.text() : str(v);
  }
  return Value(std::move(text));
}

Value Interpreter::chain(const Node& n) {
  Value left = evaluate(*n.kids[0]);
  for (std::size_t i = 0; i < n.names.size(); ++i) {
    Value right = evaluate(*n.kids[i + 1]);
    at_ = n.at;
    if (!compare(n.names[i], left, right)) return Value(false);
    left = std::move(right);
  }
  return Value(true);
}

}  // namespace redco::jinja
