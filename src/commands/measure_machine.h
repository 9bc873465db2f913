// `redco env --measure`: measures this machine for the plan's prediction of time, and stores the figures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "plan/machine_speeds.h"
#include "run/run.h"

namespace redco {

// How the cores of a host are used: ranks, and threads of each.
struct CoreLayout {
  int ranks = 1, threads = 1;
  bool operator==(const CoreLayout&) const = default;
};
// "2x1". UsageError for other texts.
CoreLayout parse_layout(const std::string& text);
// Those that are measured if none is given: one rank with all cores, a rank for each core, and one core
// alone.
std::vector<CoreLayout> usual_layouts(int cores);

struct MeasureRequest {
  CoreLayout layout;
  std::vector<std::string> hosts;  // names; empty: this machine
  bool quick = false;              // rough figures, in less than a second
};
// Measures one layout on its ranks, which this starts, and stores the figures. Returns the exit code.
int measure_machine(const MeasureRequest& request, const std::vector<std::string>& program);

// The key of this machine's measurement with this layout.
SpeedKey speed_key(const CoreLayout& layout);
// One line about a measurement: "1 rank x 2 threads: 203 GFLOP/s ...".
std::string speeds_text(const MachineSpeeds& speeds);

}  // namespace redco
