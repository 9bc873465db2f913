#include "plan/timeline.h"

#include <algorithm>
#include <utility>

namespace redco {

namespace {

double& of_class(PredictedTime& t, WorkClass c) {
  switch (c) {
    case WorkClass::products:
      return t.products;
    case WorkClass::attention:
      return t.attention;
    case WorkClass::optimizer:
      return t.optimizer;
    case WorkClass::other:
      break;
  }
  return t.elementwise;
}

void sort(std::vector<CallTime>& calls) {
  std::sort(calls.begin(), calls.end(), [](const CallTime& a, const CallTime& b) {
    return std::pair(-a.seconds, a.kind) < std::pair(-b.seconds, b.kind);
  });
}

}  // namespace

void PredictedTime::add_difference(const PredictedTime& b, const PredictedTime& base, double times) {
  for (double PredictedTime::*part :
       {&PredictedTime::total, &PredictedTime::products, &PredictedTime::attention, &PredictedTime::optimizer,
        &PredictedTime::elementwise, &PredictedTime::ops, &PredictedTime::collectives,
        &PredictedTime::overlapped})
    this->*part += times * (b.*part - base.*part);
  std::map<std::string, CallTime> sums;
  const auto add = [&](const std::vector<CallTime>& list, double n) {
    for (const CallTime& c : list) {
      CallTime& sum = sums.try_emplace(c.kind, CallTime{c.kind, c.type, 0, 0}).first->second;
      sum.count += static_cast<i64>(n) * c.count;
      sum.seconds += n * c.seconds;
    }
  };
  add(calls, 1);
  add(b.calls, times);
  add(base.calls, -times);
  calls.clear();
  for (auto& [kind, c] : sums) calls.push_back(std::move(c));
  sort(calls);
}

Timeline::Timeline(const CostModel& model, const Machines& machines, Context& context)
    : model_(model), context_(context) {
  context.queue().visit(this);
  const Mesh& mesh = context.mesh();
  const auto watch = [this](Group& group, const GroupShape& shape) {
    group.on_call(
        [this, shape](Collective kind, i64 bytes, const CallTimes&) { collective(kind, bytes, shape); });
  };
  watch(context.world(), shape_of_all(machines, mesh));
  for (const Axis a : mesh.axes()) watch(context.group(a), shape_of(machines, mesh, a, context.rank()));
}

Timeline::~Timeline() {
  context_.queue().visit(nullptr);
  context_.world().on_call(nullptr);
  for (const Axis a : context_.mesh().axes()) context_.group(a).on_call(nullptr);
}

void Timeline::begin() {
  kinds_.clear();
  now_ = network_free_ = collectives_ = overlapped_ = 0;
  arrives_.clear();
}

void Timeline::kernel(const KernelCall& call) {
  const CallWork work = work_of(call);
  if (work.operands.empty()) return;
  const double seconds = model_.kernel(work, memory_);
  Kind& kind = kinds_.try_emplace(work.kind, Kind{work.type}).first->second;
  ++kind.count;
  kind.seconds += seconds;
  now_ += seconds;
}

// What a rank must do itself is added where the call is started: it is done between the pieces of kernels, in
// the time of the rank. The network works on one transfer after the other.
void Timeline::collective(Collective kind, i64 bytes, const GroupShape& group) {
  const void* const id = std::exchange(next_, nullptr);
  const CostModel::Transfer t = model_.collective(kind, bytes, group);
  now_ += t.busy;
  collectives_ += t.busy;
  if (t.network == 0) return;
  if (!id) {
    network_waits(std::max(now_, network_free_));  // for transfers that were started before
    network_free_ = now_ + t.network;
    collectives_ += t.network;
    now_ = network_free_;
    return;
  }
  const double own = t.network * model_.speeds().transfer_own;
  now_ += own;
  collectives_ += own;
  network_free_ = std::max(now_, network_free_ + own) + t.network;
  overlapped_ += t.network;
  arrives_[id] = network_free_;
}

// Waits for what would be done at `until` if the rank computed meanwhile. Its own work for all of the
// transfer is in now_; for the rest, that work is part of the wait.
void Timeline::network_waits(double until) {
  const double left = until - now_;
  if (left <= 0) return;
  const double own = left * std::min(1.0, model_.speeds().transfer_own);
  // Those that come later come earlier by as much.
  for (auto& [id, arrives] : arrives_) arrives -= own;
  network_free_ -= own;
  now_ += left - own;
  collectives_ += left - own;
  overlapped_ = std::max(0.0, overlapped_ - left);
}

void Timeline::waits(const void* id) {
  const auto it = arrives_.find(id);
  if (it == arrives_.end()) return;
  const double arrives = it->second;
  arrives_.erase(it);
  network_waits(arrives);
}

PredictedTime Timeline::time(i64 ops) const {
  PredictedTime t;
  for (const auto& [kind, k] : kinds_) {
    of_class(t, k.type) += k.seconds;
    t.calls.push_back({kind, k.type, k.count, k.seconds});
  }
  sort(t.calls);
  t.ops = static_cast<double>(ops) * model_.op();
  t.collectives = collectives_;
  t.overlapped = overlapped_;
  t.total = now_ + t.ops;
  return t;
}

}  // namespace redco
