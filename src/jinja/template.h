// The part of Jinja that chat templates are written in, as transformers sets jinja2 up: an immutable sandbox
// with trim_blocks, lstrip_blocks, loop controls, {% generation %}, tojson without HTML escapes,
// raise_exception and strftime_now. https://jinja.palletsprojects.com/en/stable/templates/
//
// Not there: other files (include, import, extends, block), autoescape, str methods that need encodings, and
// the filters for web pages (urlize, xmlattr, ...): errors, with the place and the name.
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
  std::vector<std::pair<std::size_t, std::size_t>> generation;  // bytes that {% generation %} blocks wrote
};

class Template {
 public:
  // ContentsError with where:line:column.
  static Template parse(std::string_view text, const std::string& where);
  Template(Template&&) noexcept;
  ~Template();

  bool has_generation() const;  // {% generation %} blocks
  // input_bytes: about how much the variables hold; steps and memory are bounded in proportion. They must
  // have been made under the BudgetScope of render_with.
  Rendered render(std::vector<std::pair<std::string, Value>> variables) const;

 private:
  struct Parts;
  explicit Template(std::unique_ptr<const Parts> parts);
  std::unique_ptr<const Parts> parts_;
};

// A budget for a render whose variables come from so many bytes.
Budget budget_for(std::size_t input_bytes);

}  // namespace redco::jinja
