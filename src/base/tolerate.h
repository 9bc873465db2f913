// Work whose failure must not end the run: clean-up, pruning, logs of measurements.
#pragma once

#include <functional>
#include <string>

namespace redco {

// Runs f and returns whether it succeeded. An Error becomes a warning that begins with `what`; each `what` is
// warned of once in a process. Bugs are thrown. Safe to call from several threads.
bool tolerate(const std::string& what, const std::function<void()>& f);

}  // namespace redco
