// redco's own environments: classic control with gymnasium's equations (gymnasium 1.x,
// envs/classic_control).
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "env/environment.h"

namespace redco {

struct ClassicEnvironment {
  std::string_view name;  // "CartPole-v1"
  std::unique_ptr<Environment> (*make)();
};
std::span<const ClassicEnvironment> classic_control();

}  // namespace redco
