// Statements.
#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "jinja/filters.h"
#include "jinja/interpreter.h"

namespace redco::jinja {
namespace {

constexpr int kMaxDepth = 600;                // of evaluation; each level uses up to 2 kB of stack
constexpr std::size_t kMaxText = 256u << 20;  // bytes of the rendered text

}  // namespace

Interpreter::Level::Level() {
  if (++budget()->depth > kMaxDepth) {
    --budget()->depth;
    throw Failure("nested too deep");
  }
}

Rendered Interpreter::run(const Node& root, std::vector<std::pair<std::string, Value>>& variables) {
  auto globals = std::make_shared<Frame>(nullptr);
  define_globals(*globals);
  globals->set("namespace",
               Value::function(std::make_shared<FunctionObject>("namespace", [this](Arguments& a) {
                 auto d = std::make_shared<DictObject>(true);
                 spaces_.push_back(d);
                 fill(*d, a, "namespace");
                 for (const auto& [key, value] : d->entries) check_attribute(str(key));
                 return Value::space(std::move(d));
               })));
  auto context = std::make_shared<Frame>(globals);
  for (auto& [name, value] : variables) context->set(name, value);
  frame_ = std::make_shared<Frame>(context);
  Rendered r;
  out_ = root_ = &r.text;
  generation_ = &r.generation;
  try {
    execute(root);
  } catch (const Failure& e) {
    source_.fail(at_, e.what());
  }
  return r;
}

void Interpreter::put(std::string_view text) {
  spend(static_cast<i64>(text.size() / 64) + 1);
  if (out_->size() + text.size() > kMaxText || static_cast<i64>(out_->size() + text.size()) > budget()->most)
    throw Failure("the template writes too much text");
  *out_ += text;
}

void Interpreter::check_attribute(const std::string& name) {
  if (name.starts_with('_'))
    throw Failure(fmt::format("a namespace can't have an attribute that begins with _: {}", name));
}

Interpreter::Flow Interpreter::execute(const Node& n) {
  spend(1);
  at_ = n.at;
  switch (n.kind) {
    case NodeKind::block:
      for (const NodePtr& k : n.kids)
        if (const Flow f = execute(*k); f != Flow::on) return f;
      return Flow::on;
    case NodeKind::data:
      put(n.value.text());
      return Flow::on;
    case NodeKind::output:
      for (const NodePtr& k : n.kids) print(evaluate(*k));
      return Flow::on;
    case NodeKind::if_:
      return execute_if(n);
    case NodeKind::for_:
      return execute_for(n, evaluate(*n.kids[1]), frame_, 0);
    case NodeKind::set:
      assign(*n.kids[0], evaluate(*n.kids[1]));
      return Flow::on;
    case NodeKind::set_block:
      execute_set_block(n);
      return Flow::on;
    case NodeKind::macro:
      frames_.push_back(frame_);
      frame_->set(n.text, macro(n));
      return Flow::on;
    case NodeKind::call_block:
      execute_call_block(n);
      return Flow::on;
    case NodeKind::filter_block:
      execute_filter_block(n);
      return Flow::on;
    case NodeKind::with:
      return execute_with(n);
    case NodeKind::generation:
      execute_generation(n);
      return Flow::on;
    case NodeKind::break_:
      return Flow::break_;
    case NodeKind::continue_:
      return Flow::continue_;
    default:
      REDCO_CHECK(false, "no statement");
  }
}

void Interpreter::print(const Value& v) {
  if (v.is_string())
    put(v.text());
  else
    put(str(v));
}

Interpreter::Flow Interpreter::execute_if(const Node& n) {
  Level level;
  std::size_t i = 0;
  for (; i + 1 < n.kids.size(); i += 2)
    if (truth(evaluate(*n.kids[i]))) return execute(*n.kids[i + 1]);
  return i < n.kids.size() ? execute(*n.kids[i]) : Flow::on;
}

Interpreter::Flow Interpreter::execute_for(const Node& n, const Value& over, const FramePtr& parent,
                                           i64 depth0) {
  Level level;
  const Node& target = *n.kids[0];
  Values all = iterate(over);
  if (n.kids[2]) {  // the condition sees the target, but not `loop`
    Values kept;
    for (Value& v : all) {
      Scope scope(*this, parent);
      assign(target, v);
      if (truth(evaluate(*n.kids[2]))) kept.push_back(std::move(v));
    }
    all = std::move(kept);
  }
  auto loop = std::make_shared<LoopObject>(std::move(all), &n);
  loop->parent = parent;
  loop->depth0 = depth0;
  bool completed =
      false;  // whether an iteration ended without break or continue; jinja2's else depends on this
  for (; loop->at < static_cast<i64>(loop->items.size()); ++loop->at) {
    spend(1);
    Scope scope(*this, parent);
    frame_->set("loop", Value::loop(loop));
    assign(target, loop->items[static_cast<std::size_t>(loop->at)]);
    const Flow flow = execute(*n.kids[3]);
    completed = completed || flow == Flow::on;
    if (flow == Flow::break_) break;
  }
  loop->at =
      std::min(loop->at, static_cast<i64>(loop->items.size()) - 1);  // a kept `loop` shows the last iteration
  if (completed || !n.kids[4]) return Flow::on;
  Scope scope(*this, parent);
  return execute(*n.kids[4]);
}

void Interpreter::assign(const Node& target, Value v) {
  if (target.kind == NodeKind::name) {
    frame_->set(target.text, std::move(v));
  } else if (target.kind == NodeKind::space_attr) {
    const Value* s = frame_->find(target.text);
    at_ = target.at;
    if (!s || !s->is(Kind::space)) throw Failure("cannot assign attribute on non-namespace object");
    check_attribute(target.names[0]);
    s->space().set(Value(target.names[0]), std::move(v));
  } else {
    at_ = target.at;
    need_defined(v);
    const Values parts = iterate(v);
    if (parts.size() != target.kids.size())
      throw Failure(fmt::format("expected {} values to unpack, got {}", target.kids.size(), parts.size()));
    for (std::size_t i = 0; i < parts.size(); ++i) assign(*target.kids[i], parts[i]);
  }
}

Value Interpreter::filtered(const Node& n, std::size_t first, Value v) {
  for (std::size_t i = first; i < n.kids.size(); ++i) {
    Arguments a = arguments(*n.kids[i], 1);
    at_ = n.kids[i]->at;
    v = call_filter(n.kids[i]->text, v, a);
  }
  return v;
}

void Interpreter::execute_set_block(const Node& n) {
  Level level;
  Value v(captured([&] {
    Scope scope(*this);
    execute(*n.kids[1]);
  }));
  assign(*n.kids[0], filtered(n, 2, std::move(v)));
}

void Interpreter::execute_filter_block(const Node& n) {
  Level level;
  Value v(captured([&] {
    Scope scope(*this);
    execute(*n.kids[0]);
  }));
  print(filtered(n, 1, std::move(v)));
}

Interpreter::Flow Interpreter::execute_with(const Node& n) {
  Level level;
  Values values;
  for (std::size_t i = 2; i < n.kids.size(); i += 2) values.push_back(evaluate(*n.kids[i]));
  Scope scope(*this);
  for (std::size_t i = 0; i < values.size(); ++i) assign(*n.kids[1 + 2 * i], values[i]);
  return execute(*n.kids[0]);
}

void Interpreter::execute_generation(const Node& n) {
  Level level;
  if (out_ != root_)
    throw Failure("{% generation %} is not supported inside of macros, calls and set blocks");
  const std::size_t begin = out_->size();
  Scope scope(*this);
  execute(*n.kids[0]);
  generation_->emplace_back(begin, out_->size());
}

void Interpreter::execute_call_block(const Node& n) {
  Level level;
  const Node& call = *n.kids[0];
  const Value function = evaluate(*call.kids[0]);
  Arguments a = arguments(call, 1);
  frames_.push_back(frame_);
  a.named.emplace_back("caller", macro(*n.kids[1]));
  at_ = call.at;
  print(invoke(function, a));
}

Value Interpreter::macro(const Node& n) {
  return Value::function(std::make_shared<FunctionObject>(
      n.text, [this, &n, defined_in = frame_](Arguments& a) { return run_macro(n, defined_in, a); }));
}

Value Interpreter::run_macro(const Node& n, const FramePtr& defined_in, Arguments& a) {
  Level level;
  const std::size_t count = n.names.size(), defaults = n.kids.size() - 1;
  if (a.at.size() > count && !n.takes_more)
    throw Failure(fmt::format("macro '{}' takes at most {} argument(s)", n.text, count));
  Scope scope(*this, defined_in);
  std::vector<bool> given(count, false);
  if (n.takes_caller) frame_->set("caller", Value::undefined("No caller defined"));
  for (std::size_t i = 0; i < std::min(count, a.at.size()); ++i) {
    frame_->set(n.names[i], a.at[i]);
    given[i] = true;
  }
  auto rest = std::make_shared<DictObject>();
  for (auto& [name, value] : a.named) {
    std::size_t i = 0;
    while (i < count && n.names[i] != name) ++i;
    if (i < count) {
      if (given[i]) throw Failure(fmt::format("macro '{}' got the argument '{}' twice", n.text, name));
      frame_->set(n.names[i], value);
      given[i] = true;
    } else if (name == "caller" && n.takes_caller) {
      frame_->set("caller", value);
    } else if (n.takes_named) {
      rest->set(Value(name), value);
    } else {
      throw Failure(fmt::format("macro '{}' takes no keyword argument '{}'", n.text, name));
    }
  }
  if (n.takes_named) frame_->set("kwargs", Value::dict(std::move(rest)));
  if (n.takes_more) {
    const auto first = a.at.begin() + static_cast<std::ptrdiff_t>(std::min(count, a.at.size()));
    frame_->set("varargs", Value::tuple(Values(first, a.at.end())));
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (given[i]) continue;
    frame_->set(n.names[i], i + defaults >= count ? evaluate(*n.kids[1 + i - (count - defaults)])
                                                  : Value::undefined(fmt::format(
                                                        "parameter '{}' was not provided", n.names[i])));
  }
  return Value(captured([&] { execute(*n.kids[0]); }));
}

Value Interpreter::invoke(const Value& f, Arguments& a) {
  need_defined(f);
  if (f.is(Kind::loop)) {
    LoopObject& loop = f.loop();
    const FramePtr parent = loop.parent.lock();
    if (!loop.node->flag || !parent || a.at.size() != 1)
      throw Failure("loop(...) expects one value, in a loop marked recursive");
    const Node& n = *loop.node;
    return Value(captured([&] { execute_for(n, a.at[0], parent, loop.depth0 + 1); }));
  }
  if (!f.is(Kind::function)) throw Failure(fmt::format("'{}' object is not callable", type_name(f)));
  const Value kept = f;  // the function may replace the variable that holds the value
  return kept.function().call(a);
}

}  // namespace redco::jinja
