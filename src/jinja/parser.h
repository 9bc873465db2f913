// The parser: builds the syntax tree of a template by jinja2's grammar.
#pragma once

#include "jinja/ast.h"
#include "jinja/lexer.h"

namespace redco::jinja {

struct ParsedTemplate {
  NodePtr root;
  bool has_generation = false;  // {% generation %} blocks
};

// ContentsError with where:line:column for syntax errors, for statements that need other files (include,
// import, extends), and for trees that are nested too deep.
ParsedTemplate parse(const Source& source);

}  // namespace redco::jinja
