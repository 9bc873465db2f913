// An interpreter of Jinja templates (https://jinja.palletsprojects.com/en/stable/templates/). It behaves like
// jinja2 with the settings of transformers for chat templates: an immutable sandbox with trim_blocks,
// lstrip_blocks, loop controls, {% generation %}, tojson without HTML escapes, raise_exception and
// strftime_now.
//
// Not supported: other files (include, import, extends, block), autoescape, str methods for encodings, and
// filters for web pages (urlize, xmlattr, ...). They are errors with the position and the name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "jinja/value.h"

namespace redco::jinja {

struct Rendered {
  std::string text;
  std::vector<std::pair<std::size_t, std::size_t>>
      generation;  // byte ranges that {% generation %} blocks wrote
};

class Template {
 public:
  // ContentsError with where:line:column.
  static Template parse(std::string_view text, const std::string& where);
  Template(Template&&) noexcept;
  ~Template();

  bool has_generation() const;  // whether it has {% generation %} blocks
  // ContentsError with where:line:column. REQUIRES a BudgetScope, in which the variables were made too.
  Rendered render(std::vector<std::pair<std::string, Value>> variables) const;

 private:
  struct Parts;
  explicit Template(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

// The budget of a render. Steps and memory grow with input_bytes, the approximate size of the variables.
Budget budget_for(std::size_t input_bytes);

}  // namespace redco::jinja
