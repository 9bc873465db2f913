// The syntax tree of a template.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "jinja/value.h"

namespace redco::jinja {

enum class NodeKind : std::uint8_t {
  // Statements
  block,         // kids: statements
  data,          // value: the text
  output,        // kids: expressions
  if_,           // kids: condition, block, condition, block, ...; the last block may be the else
  for_,          // kids: target, iterable, condition or null, block, else block or null; flag: recursive
  set,           // kids: target, expression
  set_block,     // kids: target, block, then filters on it (their first kid is null)
  macro,         // text: name; names: parameters; kids: block, then the defaults of the last parameters
  call_block,    // kids: call, and a macro without a name
  filter_block,  // kids: block, then filters
  with,          // kids: block, then target, expression, ...
  generation,    // kids: block
  break_,
  continue_,
  // Expressions
  constant,     // value
  name,         // text
  space_attr,   // text: a namespace's name, names[0]: its attribute; only as a target
  list,         // kids
  tuple,        // kids
  dict,         // kids: key, value, ...
  attribute,    // text; kids: object
  item,         // kids: object, subscript
  slice,        // kids: start, stop, step; each may be null
  call,         // kids: function, then arguments
  filter,       // text; kids: operand, then arguments
  test,         // text; kids: operand, then arguments; flag: negated
  unary,        // text: - or +; kids
  not_,         // kids
  binary,       // text; kids: two
  concat,       // kids
  compare,      // kids; names: the operators between the kids
  and_,         // kids: two
  or_,          // kids: two
  conditional,  // kids: condition, then, else or null
};

struct Node;
using NodePtr = std::unique_ptr<Node>;

struct Node {
  NodeKind kind;
  std::size_t at;  // byte offset in the source
  std::string text;
  std::vector<NodePtr> kids;
  // Of call, filter and test: one name per argument. "" is positional, "*" unpacks a list, "**" unpacks a
  // dict. Of a macro: its parameters.
  std::vector<std::string> names;
  Value value;
  bool flag = false;
  // Of a macro: whether its body contains the names caller, varargs, kwargs.
  bool takes_caller = false, takes_more = false, takes_named = false;
  int height = 1;
};

}  // namespace redco::jinja
