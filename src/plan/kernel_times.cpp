#include "plan/kernel_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace redco {

KernelTimes::KernelTimes(Context& context, const CostModel* model) : context_(context), model_(model) {
  context.queue().visit(this);
  context.queue().watch([this](const char*, Queue::Clock::time_point begin) {
    if (now_) now_->measured += std::chrono::duration<double>(Queue::Clock::now() - begin).count();
  });
}

KernelTimes::~KernelTimes() {
  context_.queue().watch(nullptr);
  context_.queue().visit(nullptr);
}

void KernelTimes::kernel(const KernelCall& call) {
  const CallWork work = work_of(call);
  now_ = nullptr;
  if (work.operands.empty()) return;
  now_ = &kinds_[work.kind];
  ++now_->calls;
  if (model_) now_->predicted += model_->kernel(work, memory_);
}

std::string to_text(const std::map<std::string, KernelTimes::Kind>& kinds, bool predicted) {
  std::vector<std::pair<std::string, KernelTimes::Kind>> rows(kinds.begin(), kinds.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.measured > b.second.measured; });
  std::string t =
      fmt::format("{:<32}{:>7}{:>12}{}\n", "kernel", "calls", "ms", predicted ? "   predicted" : "");
  for (const auto& [kind, k] : rows) {
    t += fmt::format("{:<32}{:>7}{:>12.3f}", kind, k.calls, 1e3 * k.measured);
    t += predicted ? fmt::format("{:>12.3f}\n", 1e3 * k.predicted) : "\n";
  }
  return t;
}

}  // namespace redco
