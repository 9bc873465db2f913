// Sharded parameters (StateSharding::parameters) are gathered where an op uses them. Steps gather them in the
// same order, so while an op computes, the parameter that the previous step gathered next is on its way. This
// changes no bits. In the first step nothing is known, and each gather waits.
#pragma once

#include <optional>
#include <vector>

#include "ops/redistribute.h"

namespace redco {

class GatherAhead {
 public:
  // The largest part of a parameter that is gathered ahead: the memory of the next one is taken early.
  static constexpr i64 kMostBytes = i64{64} << 20;

  void begin();  // of a step
  void end();    // after its last gather

  // t, which is gathered on use, as ops see it. Collective, in the same order on all ranks.
  Tensor take(const Tensor& t);

 private:
  struct Next {
    Tensor source;
    Gathering gathering;  // ends before `source`
  };
  void start_next();
  std::vector<Tensor> before_, now_;  // what the previous step gathered, and this one so far
  std::optional<Next> next_;
};

}  // namespace redco
