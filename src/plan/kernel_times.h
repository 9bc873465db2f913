// KernelTimes: the measured time of each kind of kernel on a rank that runs, and the prediction of a cost
// model.
#pragma once

#include <map>
#include <string>

#include "plan/cost_model.h"
#include "tensor/context.h"

namespace redco {

class KernelTimes final : private CallVisitor {
 public:
  struct Kind {
    i64 calls = 0;
    double measured = 0, predicted = 0;  // s
  };
  // Sees the kernels of `context` until the end of this object. model: null: no prediction. REQUIRES: the
  // context keeps no profile.
  KernelTimes(Context& context, const CostModel* model);
  ~KernelTimes() override;
  KernelTimes(const KernelTimes&) = delete;
  KernelTimes& operator=(const KernelTimes&) = delete;

  // Forgets the times. What was touched before is remembered.
  void begin() { kinds_.clear(); }
  const std::map<std::string, Kind>& kinds() const { return kinds_; }

 private:
  void kernel(const KernelCall& call) override;
  void starts(const void*) override {}
  void waits(const void*) override {}
  Context& context_;
  const CostModel* const model_;
  kernels::ReuseDistance memory_;
  std::map<std::string, Kind> kinds_;
  Kind* now_ = nullptr;  // of the kernel that runs
};

// A table with the longest kinds first: calls, measured and predicted milliseconds.
std::string to_text(const std::map<std::string, KernelTimes::Kind>& kinds, bool predicted);

}  // namespace redco
