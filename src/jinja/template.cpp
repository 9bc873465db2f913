#include "jinja/template.h"

#include "base/error.h"
#include "jinja/interpreter.h"
#include "jinja/parser.h"

namespace redco::jinja {

struct Template::Parts {
  Source source;
  ParsedTemplate parsed;
};

Template::Template(std::unique_ptr<const Parts> parts) : parts_(std::move(parts)) {}
Template::Template(Template&&) noexcept = default;
Template::~Template() = default;

Template Template::parse(std::string_view text, const std::string& where) {
  BudgetScope none(nullptr);  // the constants outlive any render, so they are not charged
  Source source(text, where);
  ParsedTemplate parsed = jinja::parse(source);
  return Template(std::unique_ptr<const Parts>(new Parts{std::move(source), std::move(parsed)}));
}

bool Template::has_generation() const { return parts_->parsed.has_generation; }

Rendered Template::render(std::vector<std::pair<std::string, Value>> variables) const {
  REDCO_CHECK(budget(), "no budget");
  return Interpreter(parts_->source).run(*parts_->parsed.root, variables);
}

Budget budget_for(std::size_t input_bytes) {
  const auto n = static_cast<i64>(input_bytes);
  return {.steps = 10'000'000 + 100 * n, .most = (64 << 20) + 64 * n};
}

}  // namespace redco::jinja
