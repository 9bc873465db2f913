// Timeline: the predicted time of what a planned rank submits. It is the one place that sees all calls of a
// step: kernels and collectives on tensors from the queue, the others (votes, norms) from the groups.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "plan/cost_model.h"
#include "tensor/context.h"

namespace redco {

struct CallTime {
  std::string kind;
  WorkClass type = WorkClass::other;
  i64 count = 0;
  double seconds = 0;
};

// Seconds of one rank. total = products + attention + optimizer + elementwise + ops + collectives.
struct PredictedTime {
  double total = 0;
  double products = 0, attention = 0, optimizer = 0, elementwise = 0;
  double ops = 0;               // host time of ops
  double collectives = 0;       // the part that does not overlap with computation
  double overlapped = 0;        // transfers between hosts behind computation
  std::vector<CallTime> calls;  // by kind, the longest first
  // this += times x (b - base): for steps that are extrapolated.
  void add_difference(const PredictedTime& b, const PredictedTime& base, double times);
};

class Timeline final : public CallVisitor {
 public:
  // Sees what `context`, a planned rank, submits from now on. Both outlive it.
  Timeline(const CostModel& model, const Machines& machines, Context& context);
  ~Timeline() override;
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  // Begins at 0. What was touched before is remembered, so that the second of two equal steps is one of many.
  void begin();
  // The time since begin(), during which the rank ran `ops` ops.
  PredictedTime time(i64 ops) const;

  void kernel(const KernelCall& call) override;
  void starts(const void* id) override { next_ = id; }
  void waits(const void* id) override;

 private:
  void collective(Collective kind, i64 bytes, const GroupShape& group);
  void network_waits(double until);
  struct Kind {
    WorkClass type;
    i64 count = 0;
    double seconds = 0;
  };
  const CostModel& model_;
  Context& context_;
  kernels::ReuseDistance memory_;
  std::map<std::string, Kind> kinds_;
  // Seconds since begin(): of the rank, and until the network is free.
  double now_ = 0, network_free_ = 0, collectives_ = 0, overlapped_ = 0;
  const void* next_ = nullptr;
  std::map<const void*, double> arrives_;  // collectives that were started
};

}  // namespace redco
