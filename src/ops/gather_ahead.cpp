#include "ops/gather_ahead.h"

#include <utility>

namespace redco {

void GatherAhead::begin() { now_.clear(); }

void GatherAhead::end() {
  if (next_) next_->gathering.pending.wait();
  next_.reset();
  before_ = std::exchange(now_, {});
}

Tensor GatherAhead::take(const Tensor& t) {
  now_.push_back(t.detached());
  Tensor whole;
  if (next_) {
    Gathering& g = next_->gathering;
    g.pending.wait();
    if (next_->source.same_bytes(t)) {
      Context::current().account(Collective::all_gather, g.axis, g.whole.local_bytes());
      whole = t.with_storage_of(g.whole);
    }
    next_.reset();
  }
  if (!whole.defined()) whole = redistribute(t, t.used_layout());
  start_next();
  return whole;
}

void GatherAhead::start_next() {
  const size_t at = now_.size();
  // A step that has left the order of the one before gathers nothing ahead.
  if (at >= before_.size() || !before_[at - 1].same_bytes(now_[at - 1])) return;
  const Tensor& t = before_[at];
  if (t.local_bytes() > kMostBytes) return;
  if (auto gathering = start_gathering(t)) next_.emplace(Next{t, std::move(*gathering)});
}

}  // namespace redco
