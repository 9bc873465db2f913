// The scope of a block's random draws.
#pragma once

#include <string>
#include <string_view>

#include "tensor/context.h"

namespace redco {

// `name` within the pass that StepContext::scope() has named, "#pass.1:transformer.h.0", so that each pass
// has its own draws; `name` alone outside of one.
inline std::string scope_in_pass(const std::string& name) {
  const std::string_view outer = Context::current().random_scope.text();
  if (!outer.starts_with('#')) return name;
  return std::string(outer.substr(0, outer.find(':'))) + ":" + name;
}

}  // namespace redco
