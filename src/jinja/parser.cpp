#include "jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"

namespace redco::jinja {
namespace {

constexpr int kMaxHeight = 200;  // of the tree, and of the parser's own recursion

class Parser {
 public:
  explicit Parser(const Source& source) : source_(source), tokens_(lex(source)) {}

  ParsedTemplate run() {
    NodePtr root = block({});
    return {std::move(root), has_generation_};
  }

 private:
  // --- Words ---
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void step() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool is_op(std::string_view o) const { return now().kind == TokenKind::op && now().text == o; }
  bool is_name(std::string_view n) const { return now().kind == TokenKind::name && now().text == n; }
  bool take_op(std::string_view o) { return is_op(o) && (step(), true); }
  bool take_name(std::string_view n) { return is_name(n) && (step(), true); }

  static std::string shown(const Token& t) {
    switch (t.kind) {
      case TokenKind::data:
        return "text";
      case TokenKind::variable_begin:
        return "{{";
      case TokenKind::variable_end:
        return "}}";
      case TokenKind::block_begin:
        return "{%";
      case TokenKind::block_end:
        return "%}";
      case TokenKind::string:
        return "a text";
      case TokenKind::integer:
      case TokenKind::real:
        return "a number";
      case TokenKind::end:
        return "the template's end";
      default:
        return "'" + t.text.substr(0, 60) + "'";
    }
  }
  [[noreturn]] void expected(const std::string& what) const {
    source_.fail(now().at, fmt::format("expected {}, found {}", what, shown(now())));
  }
  void need_op(std::string_view o) {
    if (!take_op(o)) expected(fmt::format("'{}'", o));
  }
  void need_name(std::string_view n) {
    if (!take_name(n)) expected(fmt::format("'{}'", n));
  }
  std::string identifier(const std::string& what) {
    if (now().kind != TokenKind::name) expected(what);
    std::string name = now().text;
    step();
    return name;
  }

  // --- Nodes ---
  NodePtr make(NodeKind kind, std::size_t at, std::string text = {}) const {
    auto n = std::make_unique<Node>();
    n->kind = kind;
    n->at = at;
    n->text = std::move(text);
    return n;
  }
  void add(Node& parent, NodePtr kid) const {
    if (kid) {
      parent.height = std::max(parent.height, kid->height + 1);
      if (parent.height > kMaxHeight) source_.fail(parent.at, "nested too deep");
    }
    parent.kids.push_back(std::move(kid));
  }
  template <class... K>
  NodePtr make_of(NodeKind kind, std::size_t at, std::string text, K... kids) const {
    NodePtr n = make(kind, at, std::move(text));
    (add(*n, std::move(kids)), ...);
    return n;
  }

  struct Deeper {
    explicit Deeper(Parser& p) : p_(p) {
      if (++p_.depth_ > kMaxHeight) p_.source_.fail(p_.now().at, "nested too deep");
    }
    ~Deeper() { --p_.depth_; }
    Parser& p_;
  };

  // --- Statements ---

  // Statements up to one of `ends`, which is the current word then; with none, up to the template's end.
  NodePtr block(std::initializer_list<const char*> ends) {
    Deeper deeper(*this);
    NodePtr b = make(NodeKind::block, now().at);
    while (now().kind != TokenKind::end) {
      const Token& t = now();
      if (t.kind == TokenKind::data) {
        NodePtr d = make(NodeKind::data, t.at);
        d->value = Value(t.text);
        add(*b, std::move(d));
        step();
      } else if (t.kind == TokenKind::variable_begin) {
        step();
        add(*b, make_of(NodeKind::output, t.at, "", tuple_or_expression()));
        if (now().kind != TokenKind::variable_end) expected("}}");
        step();
      } else {
        step();  // {%
        if (now().kind != TokenKind::name) expected("a tag's name");
        for (const char* e : ends)
          if (is_name(e)) return b;
        NodePtr s = statement(ends);
        add(*b, std::move(s));
        if (now().kind != TokenKind::block_end) expected("%}");
        step();
      }
    }
    if (ends.size()) {
      std::string names;
      for (const char* e : ends) names += std::string(names.empty() ? "" : " or ") + "{% " + e + " %}";
      expected(names);
    }
    return b;
  }

  // The body of a statement: behind its %}, up to and with the end tag's name.
  NodePtr body(std::initializer_list<const char*> ends, std::string* end = nullptr) {
    take_op(":");
    if (now().kind != TokenKind::block_end) expected("%}");
    step();
    NodePtr b = block(ends);
    if (end) *end = now().text;
    step();
    return b;
  }

  NodePtr statement(std::initializer_list<const char*> ends) {
    const std::size_t at = now().at;
    const std::string tag = now().text;
    if (tag == "if") return if_statement();
    if (tag == "for") return for_statement();
    if (tag == "set") return set_statement();
    if (tag == "macro") {
      step();
      NodePtr m = make(NodeKind::macro, at, identifier("the macro's name"));
      signature(*m);
      macro_body(*m, "endmacro");
      return m;
    }
    if (tag == "call") {
      step();
      NodePtr m = make(NodeKind::macro, at, "caller");
      if (is_op("("))
        signature(*m);
      else
        m->kids.push_back(nullptr);
      NodePtr call = expression();
      if (call->kind != NodeKind::call) source_.fail(at, "expected a call behind {% call");
      macro_body(*m, "endcall");
      return make_of(NodeKind::call_block, at, "", std::move(call), std::move(m));
    }
    if (tag == "filter") {
      step();
      NodePtr n = make(NodeKind::filter_block, at);
      n->kids.push_back(nullptr);
      add(*n, one_filter(nullptr));
      while (take_op("|")) add(*n, one_filter(nullptr));
      NodePtr b = body({"endfilter"});
      n->height = std::max(n->height, b->height + 1);
      n->kids[0] = std::move(b);
      return n;
    }
    if (tag == "with") {
      step();
      NodePtr n = make(NodeKind::with, at);
      n->kids.push_back(nullptr);
      while (now().kind != TokenKind::block_end) {
        if (n->kids.size() > 1) need_op(",");
        add(*n, target(false));
        need_op("=");
        add(*n, expression());
      }
      NodePtr b = body({"endwith"});
      n->height = std::max(n->height, b->height + 1);
      n->kids[0] = std::move(b);
      return n;
    }
    if (tag == "generation") {
      step();
      has_generation_ = true;
      return make_of(NodeKind::generation, at, "", body({"endgeneration"}));
    }
    if (tag == "print") {
      step();
      NodePtr n = make(NodeKind::output, at);
      while (now().kind != TokenKind::block_end) {
        if (!n->kids.empty()) need_op(",");
        add(*n, expression());
      }
      return n;
    }
    if (tag == "break" || tag == "continue") {
      step();
      if (!loops_) source_.fail(at, fmt::format("{} outside of a for", tag));
      return make(tag == "break" ? NodeKind::break_ : NodeKind::continue_, at);
    }
    for (const char* other : {"include", "import", "from", "extends", "block", "autoescape"})
      if (tag == other) source_.fail(at, fmt::format("the tag '{}' is not supported in chat templates", tag));
    std::string wanted;
    for (const char* e : ends) wanted += std::string(wanted.empty() ? "; expected " : " or ") + e;
    source_.fail(at, fmt::format("unknown tag '{}'{}", tag.substr(0, 60), wanted));
  }

  NodePtr if_statement() {
    NodePtr n = make(NodeKind::if_, now().at);
    step();
    while (true) {
      add(*n, tuple_or_expression({}, false));
      std::string end;
      add(*n, body({"elif", "else", "endif"}, &end));
      if (end == "elif") continue;
      if (end == "else") add(*n, body({"endif"}));
      return n;
    }
  }

  NodePtr for_statement() {
    NodePtr n = make(NodeKind::for_, now().at);
    step();
    add(*n, target(false, true));
    need_name("in");
    add(*n, tuple_or_expression({"recursive"}, false));
    add(*n, take_name("if") ? expression() : nullptr);
    n->flag = take_name("recursive");
    std::string end;
    ++loops_;
    add(*n, body({"endfor", "else"}, &end));
    --loops_;
    add(*n, end == "else" ? body({"endfor"}) : nullptr);
    return n;
  }

  NodePtr set_statement() {
    const std::size_t at = now().at;
    step();
    NodePtr to = target(true);
    if (take_op("=")) return make_of(NodeKind::set, at, "", std::move(to), tuple_or_expression());
    NodePtr n = make_of(NodeKind::set_block, at, "", std::move(to));
    n->kids.push_back(nullptr);
    while (take_op("|")) add(*n, one_filter(nullptr));
    NodePtr b = body({"endset"});
    n->height = std::max(n->height, b->height + 1);
    n->kids[1] = std::move(b);
    return n;
  }

  // (a, b=1): the names, and kids from 1 on the defaults.
  void signature(Node& m) {
    m.kids.push_back(nullptr);
    need_op("(");
    while (!is_op(")")) {
      if (!m.names.empty()) need_op(",");
      m.names.push_back(assignable(identifier("a parameter's name")));
      if (take_op("="))
        add(m, expression());
      else if (m.kids.size() > 1)
        expected("'=': a parameter behind one with a default");
    }
    need_op(")");
  }

  void macro_body(Node& m, const char* end) {
    const int loops = loops_;
    loops_ = 0;  // a break in it has no loop to leave
    NodePtr b = body({end});
    loops_ = loops;
    m.takes_caller = says(*b, "caller");
    m.takes_more = says(*b, "varargs");
    m.takes_named = says(*b, "kwargs");
    m.height = std::max(m.height, b->height + 1);
    if (m.height > kMaxHeight) source_.fail(m.at, "nested too deep");
    m.kids[0] = std::move(b);
  }

  static bool says(const Node& n, std::string_view name) {
    if (n.kind == NodeKind::name && n.text == name) return true;
    for (const NodePtr& k : n.kids)
      if (k && says(*k, name)) return true;
    return false;
  }

  std::string assignable(std::string name) const {
    for (const char* word : {"true", "false", "none", "True", "False", "None"})
      if (name == word) source_.fail(now().at, fmt::format("can't assign to {}", name));
    return name;
  }

  // What a value is given to: a name, names in a tuple, and with `spaces` a namespace's attribute.
  NodePtr target(bool spaces, bool before_in = false) {
    auto one = [&]() -> NodePtr {
      Deeper deeper(*this);
      const std::size_t at = now().at;
      if (take_op("(")) {
        NodePtr inner = target(spaces);
        need_op(")");
        return inner;
      }
      std::string name = identifier("a name to assign to");
      if (spaces && take_op(".")) {
        NodePtr n = make(NodeKind::space_attr, at, std::move(name));
        n->names.push_back(identifier("an attribute's name"));
        return n;
      }
      return make(NodeKind::name, at, assignable(std::move(name)));
    };
    const std::size_t at = now().at;
    NodePtr first = one();
    if (!is_op(",")) return first;
    NodePtr t = make_of(NodeKind::tuple, at, "", std::move(first));
    while (take_op(",")) {
      if (now().kind != TokenKind::name && !is_op("(")) break;
      if (before_in && is_name("in")) break;
      add(*t, one());
    }
    return t;
  }

  // --- Expressions, from the loosest binding to the tightest ---

  NodePtr tuple_or_expression(std::initializer_list<const char*> stops = {}, bool conditional = true,
                              bool parentheses = false) {
    const std::size_t at = now().at;
    auto ends = [&] {
      if (now().kind == TokenKind::variable_end || now().kind == TokenKind::block_end || is_op(")"))
        return true;
      for (const char* s : stops)
        if (is_name(s)) return true;
      return false;
    };
    if (ends()) {
      if (!parentheses) expected("an expression");
      return make(NodeKind::tuple, at);
    }
    NodePtr first = expression(conditional);
    if (!is_op(",")) return first;
    NodePtr t = make_of(NodeKind::tuple, at, "", std::move(first));
    while (take_op(",") && !ends()) add(*t, expression(conditional));
    return t;
  }

  NodePtr expression(bool conditional = true) {
    Deeper deeper(*this);
    NodePtr e = or_expression();
    while (conditional && is_name("if")) {
      const std::size_t at = now().at;
      step();
      NodePtr condition = or_expression();
      NodePtr otherwise = take_name("else") ? expression() : nullptr;
      e = make_of(NodeKind::conditional, at, "", std::move(condition), std::move(e), std::move(otherwise));
    }
    return e;
  }

  NodePtr or_expression() {
    NodePtr left = and_expression();
    while (is_name("or")) {
      const std::size_t at = now().at;
      step();
      left = make_of(NodeKind::or_, at, "", std::move(left), and_expression());
    }
    return left;
  }

  NodePtr and_expression() {
    NodePtr left = not_expression();
    while (is_name("and")) {
      const std::size_t at = now().at;
      step();
      left = make_of(NodeKind::and_, at, "", std::move(left), not_expression());
    }
    return left;
  }

  NodePtr not_expression() {
    const std::size_t at = now().at;
    if (!take_name("not")) return compare();
    Deeper deeper(*this);
    return make_of(NodeKind::not_, at, "", not_expression());
  }

  NodePtr compare() {
    const std::size_t at = now().at;
    NodePtr first = sum();
    NodePtr n;
    while (true) {
      std::string op;
      for (const char* o : {"==", "!=", "<=", ">=", "<", ">"})
        if (is_op(o)) op = o;
      if (!op.empty()) {
        step();
      } else if (take_name("in")) {
        op = "in";
      } else if (is_name("not") && ahead().kind == TokenKind::name && ahead().text == "in") {
        step();
        step();
        op = "not in";
      } else {
        return n ? std::move(n) : std::move(first);
      }
      if (!n) n = make_of(NodeKind::compare, at, "", std::move(first));
      n->names.push_back(op);
      add(*n, sum());
    }
  }

  NodePtr sum() {
    NodePtr left = concat();
    while (is_op("+") || is_op("-")) {
      const Token& t = now();
      step();
      left = make_of(NodeKind::binary, t.at, t.text, std::move(left), concat());
    }
    return left;
  }

  NodePtr concat() {
    const std::size_t at = now().at;
    NodePtr first = product();
    if (!is_op("~")) return first;
    NodePtr n = make_of(NodeKind::concat, at, "", std::move(first));
    while (take_op("~")) add(*n, product());
    return n;
  }

  NodePtr product() {
    NodePtr left = power();
    while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
      const Token& t = now();
      step();
      left = make_of(NodeKind::binary, t.at, t.text, std::move(left), power());
    }
    return left;
  }

  NodePtr power() {
    NodePtr left = unary(true);
    while (is_op("**")) {
      const std::size_t at = now().at;
      step();
      left = make_of(NodeKind::binary, at, "**", std::move(left), unary(true));
    }
    return left;
  }

  NodePtr unary(bool filters) {
    Deeper deeper(*this);
    NodePtr n;
    const Token& t = now();
    if (is_op("-") || is_op("+")) {
      step();
      n = make_of(NodeKind::unary, t.at, t.text, unary(false));
    } else {
      n = primary();
    }
    n = postfix(std::move(n));
    return filters ? filters_and_tests(std::move(n)) : std::move(n);
  }

  NodePtr primary() {
    const Token& t = now();
    auto constant = [&](Value v) {
      NodePtr n = make(NodeKind::constant, t.at);
      n->value = std::move(v);
      return n;
    };
    if (t.kind == TokenKind::name) {
      step();
      if (t.text == "true" || t.text == "True") return constant(true);
      if (t.text == "false" || t.text == "False") return constant(false);
      if (t.text == "none" || t.text == "None") return constant(Value::none());
      return make(NodeKind::name, t.at, t.text);
    }
    if (t.kind == TokenKind::string) {  // adjacent texts are one
      std::string all;
      while (now().kind == TokenKind::string) {
        all += now().text;
        step();
      }
      return constant(Value(std::move(all)));
    }
    if (t.kind == TokenKind::integer) return step(), constant(t.integer);
    if (t.kind == TokenKind::real) return step(), constant(t.real);
    if (take_op("(")) {
      NodePtr n = tuple_or_expression({}, true, true);
      need_op(")");
      return n;
    }
    if (take_op("[")) {
      NodePtr n = make(NodeKind::list, t.at);
      while (!is_op("]")) {
        if (!n->kids.empty()) need_op(",");
        if (is_op("]")) break;
        add(*n, expression());
      }
      step();
      return n;
    }
    if (take_op("{")) {
      NodePtr n = make(NodeKind::dict, t.at);
      while (!is_op("}")) {
        if (!n->kids.empty()) need_op(",");
        if (is_op("}")) break;
        add(*n, expression());
        need_op(":");
        add(*n, expression());
      }
      step();
      return n;
    }
    expected("an expression");
  }

  NodePtr postfix(NodePtr n) {
    while (true) {
      const std::size_t at = now().at;
      if (take_op(".")) {
        if (now().kind == TokenKind::integer) {
          NodePtr index = make(NodeKind::constant, now().at);
          index->value = Value(now().integer);
          step();
          n = make_of(NodeKind::item, at, "", std::move(n), std::move(index));
        } else {
          std::string name = identifier("an attribute's name");
          n = make_of(NodeKind::attribute, at, std::move(name), std::move(n));
        }
      } else if (take_op("[")) {
        NodePtr s = subscript();
        if (is_op(",")) source_.fail(now().at, "several subscripts at once are not supported");
        need_op("]");
        n = make_of(NodeKind::item, at, "", std::move(n), std::move(s));
      } else if (is_op("(")) {
        n = call(std::move(n));
      } else {
        return n;
      }
    }
  }

  NodePtr subscript() {
    const std::size_t at = now().at;
    NodePtr start;
    if (!is_op(":")) {
      start = expression();
      if (!is_op(":")) return start;
    }
    need_op(":");
    auto part = [&]() -> NodePtr { return is_op(":") || is_op("]") || is_op(",") ? nullptr : expression(); };
    NodePtr stop = part();
    NodePtr pace = take_op(":") ? part() : nullptr;
    return make_of(NodeKind::slice, at, "", std::move(start), std::move(stop), std::move(pace));
  }

  NodePtr call(NodePtr function) {
    NodePtr n = make_of(NodeKind::call, now().at, "", std::move(function));
    arguments(*n);
    return n;
  }

  void arguments(Node& n) {
    need_op("(");
    bool first = true, named = false;
    while (!is_op(")")) {
      if (!first) {
        need_op(",");
        if (is_op(")")) break;
      }
      first = false;
      if (take_op("*")) {
        n.names.push_back("*");
      } else if (take_op("**")) {
        n.names.push_back("**");
        named = true;
      } else if (now().kind == TokenKind::name && ahead().kind == TokenKind::op && ahead().text == "=") {
        for (const std::string& other : n.names)
          if (other == now().text)
            source_.fail(now().at, fmt::format("the argument {} is given twice", other));
        n.names.push_back(now().text);
        step();
        step();
        named = true;
      } else {
        if (named) expected("a named argument behind a named argument");
        n.names.push_back("");
      }
      add(n, expression());
    }
    step();
  }

  // A filter's name and arguments; the operand is null in blocks.
  NodePtr one_filter(NodePtr operand) {
    const std::size_t at = now().at;
    std::string name = identifier("a filter's name");
    while (take_op(".")) name += "." + identifier("a filter's name");
    NodePtr n = make_of(NodeKind::filter, at, std::move(name), std::move(operand));
    if (is_op("(")) arguments(*n);
    return n;
  }

  NodePtr filters_and_tests(NodePtr n) {
    while (true) {
      if (take_op("|")) {
        n = one_filter(std::move(n));
      } else if (is_name("is")) {
        n = test(std::move(n));
      } else if (is_op("(")) {
        n = call(std::move(n));
      } else {
        return n;
      }
    }
  }

  NodePtr test(NodePtr operand) {
    const std::size_t at = now().at;
    step();  // is
    const bool negated = take_name("not");
    NodePtr n = make_of(NodeKind::test, at, identifier("a test's name"), std::move(operand));
    n->flag = negated;
    const Token& t = now();
    const bool starts = t.kind == TokenKind::name || t.kind == TokenKind::string ||
                        t.kind == TokenKind::integer || t.kind == TokenKind::real || is_op("[") || is_op("{");
    if (is_op("(")) {
      arguments(*n);
    } else if (starts && !is_name("else") && !is_name("or") && !is_name("and")) {
      if (is_name("is")) source_.fail(t.at, "tests can't be chained with is");
      n->names.push_back("");
      add(*n, postfix(primary()));
    }
    return n;
  }

  const Source& source_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0, loops_ = 0;
  bool has_generation_ = false;
};

}  // namespace

ParsedTemplate parse(const Source& source) { return Parser(source).run(); }

}  // namespace redco::jinja
