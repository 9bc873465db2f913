// The tree of a template.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jinja/value.h"

namespace redco::jinja {

enum class NodeKind : std::uint8_t {
  // Statements; `body` of a list is a block.
  block,         // kids: statements
  data,          // value: the text
  output,        // kids: expressions
  if_,           // kids: condition, block, condition, block, ... and a last block (else)
  for_,          // kids: target, iterable, condition or null, block, else block or null; flag: recursive
  set,           // kids: target, expression
  set_block,     // kids: target, block, then filters on it (their first kid null)
  macro,         // text: name; names, and kids: block, then the defaults of the last names
  call_block,    // kids: call, and a macro without a name
  filter_block,  // kids: block, then filters
  with,          // kids: block, then target, expression, ...
  generation,    // kids: block
  break_,
  continue_,
  // Expressions
  constant,     // value
  name,         // text
  space_attr,   // text: a namespace's name, names[0]: its attribute. A target only
  list,         // kids
  tuple,        // kids
  dict,         // kids: key, value, ...
  attribute,    // text; kids: object
  item,         // kids: object, subscript
  slice,        // kids: start, stop, step, each may be null
  call,         // kids: function, then arguments
  filter,       // text; kids: operand, then arguments
  test,         // text; kids: operand, then arguments; flag: negated
  unary,        // text: - or +; kids
  not_,         // kids
  binary,       // text; kids: two
  concat,       // kids
  compare,      // kids; names: the operators between them
  and_,         // kids: two
  or_,          // kids: two
  conditional,  // kids: condition, then, else or null
};

struct Node;
using NodePtr = std::unique_ptr<Node>;

struct Node {
  NodeKind kind;
  std::size_t at;  // its byte in the source
  std::string text;
  std::vector<NodePtr> kids;
  // Of call, filter and test: one for each argument, "" is positional, "*" a list and "**" a dict of them.
  // Of a macro: its parameters.
  std::vector<std::string> names;
  Value value;
  bool flag = false;
  // Of a macro: whether its body says caller, varargs, kwargs.
  bool takes_caller = false, takes_more = false, takes_named = false;
  int height = 1;
};

}  // namespace redco::jinja
