#include "jinja/expression_parser.h"

namespace redco::jinja {

std::string ExpressionParser::shown(const Token& t) {
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
      return "a string";
    case TokenKind::integer:
    case TokenKind::real:
      return "a number";
    case TokenKind::end:
      return "the template's end";
    default:
      return "'" + t.text.substr(0, 60) + "'";
  }
}

NodePtr ExpressionParser::tuple_or_expression(std::initializer_list<const char*> stops, bool conditional,
                                              bool parentheses) {
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

NodePtr ExpressionParser::expression(bool conditional) {
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

NodePtr ExpressionParser::or_expression() {
  NodePtr left = and_expression();
  while (is_name("or")) {
    const std::size_t at = now().at;
    step();
    left = make_of(NodeKind::or_, at, "", std::move(left), and_expression());
  }
  return left;
}

NodePtr ExpressionParser::and_expression() {
  NodePtr left = not_expression();
  while (is_name("and")) {
    const std::size_t at = now().at;
    step();
    left = make_of(NodeKind::and_, at, "", std::move(left), not_expression());
  }
  return left;
}

NodePtr ExpressionParser::not_expression() {
  const std::size_t at = now().at;
  if (!take_name("not")) return compare();
  Deeper deeper(*this);
  return make_of(NodeKind::not_, at, "", not_expression());
}

NodePtr ExpressionParser::compare() {
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

NodePtr ExpressionParser::sum() {
  NodePtr left = concat();
  while (is_op("+") || is_op("-")) {
    const Token& t = now();
    step();
    left = make_of(NodeKind::binary, t.at, t.text, std::move(left), concat());
  }
  return left;
}

NodePtr ExpressionParser::concat() {
  const std::size_t at = now().at;
  NodePtr first = product();
  if (!is_op("~")) return first;
  NodePtr n = make_of(NodeKind::concat, at, "", std::move(first));
  while (take_op("~")) add(*n, product());
  return n;
}

NodePtr ExpressionParser::product() {
  NodePtr left = power();
  while (is_op("*") || is_op("/") || is_op("//") || is_op("%")) {
    const Token& t = now();
    step();
    left = make_of(NodeKind::binary, t.at, t.text, std::move(left), power());
  }
  return left;
}

NodePtr ExpressionParser::power() {
  NodePtr left = unary(true);
  while (is_op("**")) {
    const std::size_t at = now().at;
    step();
    left = make_of(NodeKind::binary, at, "**", std::move(left), unary(true));
  }
  return left;
}

NodePtr ExpressionParser::unary(bool filters) {
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

NodePtr ExpressionParser::primary() {
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
  if (t.kind == TokenKind::string) {  // adjacent strings are concatenated
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

NodePtr ExpressionParser::postfix(NodePtr n) {
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
      if (is_op(",")) source_.fail(now().at, "subscripts with commas are not supported");
      need_op("]");
      n = make_of(NodeKind::item, at, "", std::move(n), std::move(s));
    } else if (is_op("(")) {
      n = call(std::move(n));
    } else {
      return n;
    }
  }
}

NodePtr ExpressionParser::subscript() {
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

NodePtr ExpressionParser::call(NodePtr function) {
  NodePtr n = make_of(NodeKind::call, now().at, "", std::move(function));
  arguments(*n);
  return n;
}

void ExpressionParser::arguments(Node& n) {
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
        if (other == now().text) source_.fail(now().at, fmt::format("the argument {} is given twice", other));
      n.names.push_back(now().text);
      step();
      step();
      named = true;
    } else {
      if (named) expected("a named argument after a named argument");
      n.names.push_back("");
    }
    add(n, expression());
  }
  step();
}

NodePtr ExpressionParser::one_filter(NodePtr operand) {
  const std::size_t at = now().at;
  std::string name = identifier("a filter's name");
  while (take_op(".")) name += "." + identifier("a filter's name");
  NodePtr n = make_of(NodeKind::filter, at, std::move(name), std::move(operand));
  if (is_op("(")) arguments(*n);
  return n;
}

NodePtr ExpressionParser::filters_and_tests(NodePtr n) {
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

NodePtr ExpressionParser::test(NodePtr operand) {
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

}  // namespace redco::jinja
