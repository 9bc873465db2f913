// Runs work whose failure must not end the run: clean-up, pruning, logging of measurements.
#pragma once

#include <functional>
#include <string>

namespace redco {

// Runs f and returns whether it succeeded. An Error becomes a warning that begins with `what`, once per
// `what` and process. Bugs are still thrown. Any thread may call it.
bool tolerate(const std::string& what, const std::function<void()>& f);

}  // namespace redco
