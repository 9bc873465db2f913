#include "jinja/parser.h"

#include <fmt/format.h>

#include <algorithm>

#include "jinja/expression_parser.h"

namespace redco::jinja {
namespace {

class StatementParser : ExpressionParser {
 public:
  explicit StatementParser(const Source& source) : ExpressionParser(source) {}

  ParsedTemplate run() {
    NodePtr root = block({});
    return {std::move(root), has_generation_};
  }

 private:
  // Parses statements up to a tag of `ends`, whose name is then the current token; if `ends` is empty, up to
  // the template's end.
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

  // Parses the body of a statement: from its %} through the end tag's name.
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
      if (call->kind != NodeKind::call) source_.fail(at, "expected a call after {% call");
      macro_body(*m, "endcall");
      return make_of(NodeKind::call_block, at, "", std::move(call), std::move(m));
    }
    if (tag == "filter") {
      step();
      NodePtr n = make(NodeKind::filter_block, at);
      n->kids.push_back(nullptr);
      add(*n, one_filter(nullptr));
      while (take_op("|")) add(*n, one_filter(nullptr));
      put(*n, 0, body({"endfilter"}));
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
      put(*n, 0, body({"endwith"}));
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
      if (!loops_) source_.fail(at, fmt::format("{} outside of a for loop", tag));
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
    put(*n, 1, body({"endset"}));
    return n;
  }

  // (a, b=1): adds the names, and the defaults as kids from 1 on.
  void signature(Node& m) {
    m.kids.push_back(nullptr);
    need_op("(");
    while (!is_op(")")) {
      if (!m.names.empty()) need_op(",");
      m.names.push_back(assignable(identifier("a parameter's name")));
      if (take_op("="))
        add(m, expression());
      else if (m.kids.size() > 1)
        expected("'=': a parameter after one with a default needs a default");
    }
    need_op(")");
  }

  void macro_body(Node& m, const char* end) {
    const int loops = loops_;
    loops_ = 0;  // a break in a macro can't leave a loop around it
    NodePtr b = body({end});
    loops_ = loops;
    m.takes_caller = says(*b, "caller");
    m.takes_more = says(*b, "varargs");
    m.takes_named = says(*b, "kwargs");
    put(m, 0, std::move(b));
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

  // The target of an assignment: a name, a tuple of names, or with `spaces` a namespace's attribute.
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

  int loops_ = 0;
  bool has_generation_ = false;
};

}  // namespace

ParsedTemplate parse(const Source& source) { return StatementParser(source).run(); }

}  // namespace redco::jinja
