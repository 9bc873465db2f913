// Executes the syntax tree of a template. execute.cpp has the statements, evaluate.cpp the expressions.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/ast.h"
#include "jinja/lexer.h"
#include "jinja/template.h"
#include "jinja/value.h"

namespace redco::jinja {

// The variables of one scope. Names are views of the tree or of text that outlives the render.
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

using FramePtr = std::shared_ptr<Frame>;

// Defines the functions that every template has, except namespace().
void define_globals(Frame& globals);
// Fills a dict or namespace from the arguments of dict(...) or namespace(...): a mapping or pairs, and named
// values.
void fill(DictObject& d, Arguments& a, const char* what);

class Interpreter {
 public:
  explicit Interpreter(const Source& source) : source_(source) {}
  // Clears macros' scopes and namespaces, because only these can form reference cycles.
  ~Interpreter() {
    for (const auto& f : frames_) f->clear();
    for (const auto& s : spaces_) s->entries.clear();
  }

  Rendered run(const Node& root, std::vector<std::pair<std::string, Value>>& variables);

 private:
  enum class Flow : std::uint8_t { on, break_, continue_ };

  struct Level {
    Level();
    ~Level() { --budget()->depth; }
  };
  // A new scope inside of the current one, or inside of `parent`.
  struct Scope {
    Scope(Interpreter& i, FramePtr parent) : i_(i), before_(i.frame_) {
      i.frame_ = std::make_shared<Frame>(std::move(parent));
    }
    explicit Scope(Interpreter& i) : Scope(i, i.frame_) {}
    ~Scope() { i_.frame_ = std::move(before_); }
    Interpreter& i_;
    FramePtr before_;
  };

  // Returns the text that f writes.
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

  // --- Statements (execute.cpp) ---
  void put(std::string_view text);
  static void check_attribute(const std::string& name);
  Flow execute(const Node& n);
  void print(const Value& v);
  Flow execute_if(const Node& n);
  Flow execute_for(const Node& n, const Value& over, const FramePtr& parent, i64 depth0);
  void assign(const Node& target, Value v);
  Value filtered(const Node& n, std::size_t first, Value v);
  void execute_set_block(const Node& n);
  void execute_filter_block(const Node& n);
  Flow execute_with(const Node& n);
  void execute_generation(const Node& n);
  void execute_call_block(const Node& n);
  Value macro(const Node& n);
  Value run_macro(const Node& n, const FramePtr& defined_in, Arguments& a);
  Value invoke(const Value& f, Arguments& a);

  // --- Expressions (evaluate.cpp) ---
  Arguments arguments(const Node& n, std::size_t first);
  Value evaluate(const Node& n);
  Value variable(const Node& n);
  static Value attribute_of(const Value& object, const std::string& name);
  Value item_of(const Node& n);
  Values all(const Node& n);
  Value dict(const Node& n);
  Value concat(const Node& n);
  Value chain(const Node& n);

  const Source& source_;
  std::size_t at_ = 0;
  FramePtr frame_;
  std::string *out_ = nullptr, *root_ = nullptr;
  std::vector<std::pair<std::size_t, std::size_t>>* generation_ = nullptr;
  std::vector<FramePtr> frames_;                     // the scopes in which macros are defined
  std::vector<std::shared_ptr<DictObject>> spaces_;  // all namespaces
};

}  // namespace redco::jinja
