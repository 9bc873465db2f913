#include "nn/activations_by_name.h"

#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"

namespace redco {

Activations::Activations(std::vector<std::string> captures, std::map<std::string, Replacement> replaced)
    : captures_(std::move(captures)), replaced_(std::move(replaced)) {}

const Tensor& Activations::operator[](const std::string& name) const {
  const auto it = captured_.find(name);
  if (it == captured_.end())
    throw UsageError(
        "[model] the activation '{}' is not captured; captured: {}", name,
        captured_.empty() ? "none, since no pass was made" : fmt::format("{}", fmt::join(captures_, ", ")));
  return it->second;
}

void Activations::begin() {
  captured_.clear();
  seen_.clear();
}

void Activations::end(const std::string& family) const {
  const auto check = [&](const std::string& name) {
    if (std::ranges::count(seen_, name) == 0)
      throw UsageError("[model] the family '{}' has no activation '{}'; it has: {}", family, name,
                       seen_.empty() ? "none" : fmt::format("{}", fmt::join(seen_, ", ")));
  };
  for (const std::string& name : captures_) check(name);
  for (const auto& [name, f] : replaced_) check(name);
}

Tensor Activations::pass(const std::string& name, const Tensor& x) {
  seen_.push_back(name);
  Tensor y = x;
  if (const auto it = replaced_.find(name); it != replaced_.end()) {
    y = it->second(x);
    REDCO_CHECK(y.defined() && y.shape() == x.shape(), "the activation '{}' is {}; its replacement is {}",
                name, describe(x), y.defined() ? describe(y) : "undefined");
  }
  if (std::ranges::count(captures_, name) != 0) captured_[name] = y;
  return y;
}

}  // namespace redco
