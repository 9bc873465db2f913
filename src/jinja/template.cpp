#include "jinja/template.h"

#include <fmt/format.h>

#include <ctime>
#include <optional>

#include "base/error.h"
#include "jinja/filters.h"
#include "jinja/ops.h"
#include "jinja/parser.h"
#include "jinja/text.h"

namespace redco::jinja {

// Variables of one scope. Names point into the tree or into text that outlives the render.
class Frame {
 public:
  explicit Frame(std::shared_ptr<Frame> parent) : parent_(std::move(parent)) {}
  const Value* find(std::string_view name) const {
    for (const Frame* f = this; f; f = f->parent_.get())
      for (auto it = f->variables_.rbegin(); it != f->variables_.rend(); ++it)
        if (it->first == name) return &it->second;
    return nullptr;
  }
  void set(std::string_view name, Value value) {
    for (auto& [n, v] : variables_)
      if (n == name) {
        v = std::move(value);
        return;
      }
    variables_.emplace_back(name, std::move(value));
  }
  void clear() { variables_.clear(); }

 private:
  std::vector<std::pair<std::string_view, Value>> variables_;
  std::shared_ptr<Frame> parent_;
};

namespace {

using FramePtr = std::shared_ptr<Frame>;

constexpr int kMaxDepth = 600;                // of evaluation; a level takes up to 2 kB of stack
constexpr std::size_t kMaxText = 256u << 20;  // of what a template writes
constexpr i64 kMaxRange = 100'000;            // as the sandbox has it
enum class Flow : std::uint8_t { on, break_, continue_ };

std::string object_name(const Value& v) {
  return v.is(Kind::none) ? "None" : v.is(Kind::space) ? "namespace" : type_name(v) + " object";
}

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

// dict(...) and namespace(...): of a mapping or pairs, and named values.
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

class Interpreter {
 public:
  explicit Interpreter(const Source& source) : source_(source) {}
  // What could hold itself goes one by one.
  ~Interpreter() {
    for (const auto& f : frames_) f->clear();
    for (const auto& s : spaces_) s->entries.clear();
  }

  Rendered run(const Node& root, std::vector<std::pair<std::string, Value>>& variables) {
    auto globals = std::make_shared<Frame>(nullptr);
    auto define = [&](const char* name, auto f) {
      globals->set(name, Value::function(std::make_shared<FunctionObject>(name, f)));
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
    define("namespace", [this](Arguments& a) {
      auto d = std::make_shared<DictObject>(true);
      spaces_.push_back(d);
      fill(*d, a, "namespace");
      for (const auto& [key, value] : d->entries) check_attribute(str(key));
      return Value::space(std::move(d));
    });
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

 private:
  // --- Bookkeeping ---
  struct Level {
    explicit Level() {
      if (++budget()->depth > kMaxDepth) {
        --budget()->depth;
        throw Failure("nested too deep");
      }
    }
    ~Level() { --budget()->depth; }
  };
  // A new scope inside the present one, or inside `parent`.
  struct Scope {
    Scope(Interpreter& i, FramePtr parent) : i_(i), before_(i.frame_) {
      i.frame_ = std::make_shared<Frame>(std::move(parent));
    }
    explicit Scope(Interpreter& i) : Scope(i, i.frame_) {}
    ~Scope() { i_.frame_ = std::move(before_); }
    Interpreter& i_;
    FramePtr before_;
  };

  void put(std::string_view text) {
    spend(static_cast<i64>(text.size() / 64) + 1);
    if (out_->size() + text.size() > kMaxText ||
        static_cast<i64>(out_->size() + text.size()) > budget()->most)
      throw Failure("the template writes too much text");
    *out_ += text;
  }

  // What f writes.
  template <class F>
  std::string captured(F&& f) {
    std::string text;
    std::string* before = std::exchange(out_, &text);
    struct Back {
      std::string*& out;
      std::string* before;
      ~Back() { out = before; }
    } back{out_, before};
    f();
    return text;
  }

  static void check_attribute(const std::string& name) {
    if (name.starts_with('_'))
      throw Failure(fmt::format("a namespace can't have an attribute that begins with _: {}", name));
  }

  // --- Statements ---
  Flow execute(const Node& n) {
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

  void print(const Value& v) {
    if (v.is_string())
      put(v.text());
    else
      put(str(v));
  }

  Flow execute_if(const Node& n) {
    Level level;
    std::size_t i = 0;
    for (; i + 1 < n.kids.size(); i += 2)
      if (truth(evaluate(*n.kids[i]))) return execute(*n.kids[i + 1]);
    return i < n.kids.size() ? execute(*n.kids[i]) : Flow::on;
  }

  Flow execute_for(const Node& n, const Value& over, const FramePtr& parent, i64 depth0) {
    Level level;
    const Node& target = *n.kids[0];
    Values all = iterate(over);
    if (n.kids[2]) {  // the condition sees the target, but no loop
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
    bool completed = false;  // an iteration, without break or continue: what jinja2's else goes by
    for (; loop->at < static_cast<i64>(loop->items.size()); ++loop->at) {
      spend(1);
      Scope scope(*this, parent);
      frame_->set("loop", Value::loop(loop));
      assign(target, loop->items[static_cast<std::size_t>(loop->at)]);
      const Flow flow = execute(*n.kids[3]);
      completed = completed || flow == Flow::on;
      if (flow == Flow::break_) break;
    }
    loop->at = std::min(loop->at, static_cast<i64>(loop->items.size()) - 1);  // who kept it sees the last one
    if (completed || !n.kids[4]) return Flow::on;
    Scope scope(*this, parent);
    return execute(*n.kids[4]);
  }

  void assign(const Node& target, Value v) {
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

  Value filtered(const Node& n, std::size_t first, Value v) {
    for (std::size_t i = first; i < n.kids.size(); ++i) {
      Arguments a = arguments(*n.kids[i], 1);
      at_ = n.kids[i]->at;
      v = call_filter(n.kids[i]->text, v, a);
    }
    return v;
  }

  void execute_set_block(const Node& n) {
    Level level;
    Value v(captured([&] {
      Scope scope(*this);
      execute(*n.kids[1]);
    }));
    assign(*n.kids[0], filtered(n, 2, std::move(v)));
  }

  void execute_filter_block(const Node& n) {
    Level level;
    Value v(captured([&] {
      Scope scope(*this);
      execute(*n.kids[0]);
    }));
    print(filtered(n, 1, std::move(v)));
  }

  Flow execute_with(const Node& n) {
    Level level;
    Values values;
    for (std::size_t i = 2; i < n.kids.size(); i += 2) values.push_back(evaluate(*n.kids[i]));
    Scope scope(*this);
    for (std::size_t i = 0; i < values.size(); ++i) assign(*n.kids[1 + 2 * i], values[i]);
    return execute(*n.kids[0]);
  }

  void execute_generation(const Node& n) {
    Level level;
    if (out_ != root_)
      throw Failure("{% generation %} is not supported inside of macros, calls and set blocks");
    const std::size_t begin = out_->size();
    Scope scope(*this);
    execute(*n.kids[0]);
    generation_->emplace_back(begin, out_->size());
  }

  void execute_call_block(const Node& n) {
    Level level;
    const Node& call = *n.kids[0];
    const Value function = evaluate(*call.kids[0]);
    Arguments a = arguments(call, 1);
    frames_.push_back(frame_);
    a.named.emplace_back("caller", macro(*n.kids[1]));
    at_ = call.at;
    print(invoke(function, a));
  }

  // --- Macros ---
  Value macro(const Node& n) {
    return Value::function(std::make_shared<FunctionObject>(
        n.text, [this, &n, defined_in = frame_](Arguments& a) { return run_macro(n, defined_in, a); }));
  }

  Value run_macro(const Node& n, const FramePtr& defined_in, Arguments& a) {
    Level level;
    const std::size_t count = n.names.size(), defaults = n.kids.size() - 1;
    if (a.at.size() > count && !n.takes_more)
      throw Failure(fmt::format("macro '{}' takes not more than {} argument(s)", n.text, count));
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

  Value invoke(const Value& f, Arguments& a) {
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
    const Value kept = f;  // the function may replace the variable that holds it
    return kept.function().call(a);
  }

  // --- Expressions ---
  Arguments arguments(const Node& n, std::size_t first) {
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

  Value evaluate(const Node& n) {
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
        return Value::undefined(
            "the inline if-expression evaluated to false and no else section was defined");
      default:
        REDCO_CHECK(false, "no expression");
    }
  }

  Value variable(const Node& n) {
    if (const Value* v = frame_->find(n.text)) return *v;
    for (const char* other : {"lipsum", "cycler", "joiner"})
      if (n.text == other)
        throw Failure(fmt::format("the function {} is not supported in chat templates", n.text));
    return Value::undefined(fmt::format("'{}' is undefined", n.text));
  }

  static Value attribute_of(const Value& object, const std::string& name) {
    Value v = attribute(object, name);
    if (v.is(Kind::undefined) && !v.identity())
      return Value::undefined(fmt::format("'{}' has no attribute '{}'", object_name(object), name));
    return v;
  }

  Value item_of(const Node& n) {
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

  Values all(const Node& n) {
    Values out;
    out.reserve(n.kids.size());
    for (const NodePtr& k : n.kids) out.push_back(evaluate(*k));
    return out;
  }

  Value dict(const Node& n) {
    auto d = std::make_shared<DictObject>();
    for (std::size_t i = 0; i < n.kids.size(); i += 2) {
      Value key = evaluate(*n.kids[i]);
      d->set(std::move(key), evaluate(*n.kids[i + 1]));
    }
    return Value::dict(std::move(d));
  }

  Value concat(const Node& n) {
    std::string text;
    for (const NodePtr& k : n.kids) {
      const Value v = evaluate(*k);
      text += v.is_string() ? v.text() : str(v);
    }
    return Value(std::move(text));
  }

  Value chain(const Node& n) {
    Value left = evaluate(*n.kids[0]);
    for (std::size_t i = 0; i < n.names.size(); ++i) {
      Value right = evaluate(*n.kids[i + 1]);
      at_ = n.at;
      if (!compare(n.names[i], left, right)) return Value(false);
      left = std::move(right);
    }
    return Value(true);
  }

  const Source& source_;
  std::size_t at_ = 0;
  FramePtr frame_;
  std::string *out_ = nullptr, *root_ = nullptr;
  std::vector<std::pair<std::size_t, std::size_t>>* generation_ = nullptr;
  std::vector<FramePtr> frames_;                     // in which macros were defined
  std::vector<std::shared_ptr<DictObject>> spaces_;  // every namespace
};

}  // namespace

struct Template::Parts {
  Source source;
  ParsedTemplate parsed;
};

Template::Template(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Template::Template(Template&&) noexcept = default;
Template::~Template() = default;

Template Template::parse(std::string_view text, const std::string& where) {
  BudgetScope none(nullptr);  // a template's constants outlive any render
  Source source(text, where);
  ParsedTemplate parsed = jinja::parse(source);
  return Template(std::unique_ptr<const Parts>(new Parts{std::move(source), std::move(parsed)}));
}

bool Template::has_generation() const { return parts_->parsed.has_generation; }

Rendered Template::render(std::vector<std::pair<std::string, Value>> variables) const {
  REDCO_CHECK(budget(), "no budget");
  return Interpreter(parts_->source).run(*parts_->parsed.root, variables);
}

Budget budget_for(std::size_t input_bytes) {
  const auto n = static_cast<i64>(input_bytes);
  return {.steps = 10'000'000 + 100 * n, .most = (64 << 20) + 64 * n};
}

}  // namespace redco::jinja
