// Families that transformers has and redco does not, with what redco lacks for them.
#pragma once

#include <span>
#include <string>

namespace redco {

struct MissingFamily {
  const char *model_type, *lacks;
};
std::span<const MissingFamily> missing_families();
// "" for another family.
std::string lacking_for(const std::string& model_type);

}  // namespace redco
