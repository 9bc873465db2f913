// Parses expressions by jinja2's grammar. The statement parser (parser.cpp) derives from it.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace redco::jinja {

class ExpressionParser {
 protected:
  explicit ExpressionParser(const Source& source) : source_(source), tokens_(lex(source)) {}

  // --- Expressions ---
  NodePtr tuple_or_expression(std::initializer_list<const char*> stops = {}, bool conditional = true,
                              bool parentheses = false);
  NodePtr expression(bool conditional = true);
  // Parses a filter's name and arguments. operand: null in filter and set blocks.
  NodePtr one_filter(NodePtr operand);

  // --- Tokens ---
  const Token& now() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  void step() {
    if (at_ + 1 < tokens_.size()) ++at_;
  }
  bool is_op(std::string_view o) const { return now().kind == TokenKind::op && now().text == o; }
  bool is_name(std::string_view n) const { return now().kind == TokenKind::name && now().text == n; }
  bool take_op(std::string_view o) { return is_op(o) && (step(), true); }
  bool take_name(std::string_view n) { return is_name(n) && (step(), true); }

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
  // The kid may be null.
  void add(Node& parent, NodePtr kid) const {
    parent.kids.push_back(nullptr);
    if (kid) put(parent, parent.kids.size() - 1, std::move(kid));
  }
  void put(Node& parent, std::size_t index, NodePtr kid) const {
    parent.height = std::max(parent.height, kid->height + 1);
    if (parent.height > kMaxHeight) source_.fail(parent.at, "nested too deep");
    parent.kids[index] = std::move(kid);
  }
  template <class... K>
  NodePtr make_of(NodeKind kind, std::size_t at, std::string text, K... kids) const {
    NodePtr n = make(kind, at, std::move(text));
    (add(*n, std::move(kids)), ...);
    return n;
  }

  struct Deeper {
    explicit Deeper(ExpressionParser& p) : p_(p) {
      if (++p_.depth_ > kMaxHeight) p_.source_.fail(p_.now().at, "nested too deep");
    }
    ~Deeper() { --p_.depth_; }
    ExpressionParser& p_;
  };

  const Source& source_;

 private:
  static std::string shown(const Token& t);

  // From the loosest binding to the tightest:
  NodePtr or_expression();
  NodePtr and_expression();
  NodePtr not_expression();
  NodePtr compare();
  NodePtr sum();
  NodePtr concat();
  NodePtr product();
  NodePtr power();
  NodePtr unary(bool filters);
  NodePtr primary();
  NodePtr postfix(NodePtr n);
  NodePtr subscript();
  NodePtr call(NodePtr function);
  void arguments(Node& n);
  NodePtr filters_and_tests(NodePtr n);
  NodePtr test(NodePtr operand);

  static constexpr int kMaxHeight = 200;  // of the tree, and of the parser's recursion

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace redco::jinja
