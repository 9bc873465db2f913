#include "comm/calls.h"

#include <algorithm>

#include "base/activity.h"
#include "base/call_log.h"
#include "base/error.h"

namespace redco {

namespace {

using Clock = std::chrono::steady_clock;

constexpr i64 kShortBytes = 4096;

double seconds_of(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

std::byte* Calls::Slot::stage(i64 bytes) {
  if (bytes > staging_bytes) {
    staging.reset();
    staging_bytes = 0;
    staging.reset(new std::byte[static_cast<std::size_t>(bytes)]);
    staging_bytes = bytes;
  }
  return staging.get();
}

Calls::Calls(int rank, const std::vector<int>& host_of, std::unique_ptr<Transport> transport,
             std::shared_ptr<InFlight> in_flight)
    : rank_(rank),
      size_(static_cast<int>(host_of.size())),
      hosts_(rank, host_of),
      transport_(std::move(transport)),
      in_flight_(std::move(in_flight)),
      sent_(static_cast<std::size_t>(size_)),
      received_(sent_) {
  traffic.resize(static_cast<std::size_t>(hosts_.size()));
}

Calls::~Calls() { fail(nullptr); }

Call& Calls::make(Collective what, Pattern pattern, i64 bytes) {
  in_flight_->rethrow();
  if (broken_) std::rethrow_exception(broken_);
  if (free_.empty()) {
    calls_.push_back(std::make_unique<Call>());
    free_.push_back(calls_.back().get());
  }
  Call& c = *free_.back();
  free_.pop_back();
  c.what = what;
  c.pattern = pattern;
  c.bytes = bytes;
  c.out.clear();
  c.in.clear();
  c.root = 0;
  c.sizes = 0;
  c.begun = c.ended = 0;
  c.failed = false;
  return c;
}

Started Calls::start(Call& c) {
  c.times.started = Clock::now();
  Started handle(this, &c);
  c.pieces = pieces_of(c);
  c.number = c.pattern == Pattern::one_way ? 0 : ++n_calls_;
  if (transport_->is_process()) c.log = call_log::add(name_of(c.what), c.number, size_, c.bytes);
  in_flight_->add(*this);
  try {
    if (c.pattern == Pattern::one_way) {
      const auto idle =
          std::find_if(one_way_.begin(), one_way_.end(), [](const auto& s) { return !s->call; });
      begin(idle != one_way_.end() ? **idle : *one_way_.emplace_back(std::make_unique<Slot>()), c);
    } else {
      waiting_.push_back(&c);
    }
    run();
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
  seconds_ += seconds_of(Clock::now() - c.times.started);
  return handle;
}

void Calls::wait(Call& c) {
  c.times.wait_began = Clock::now();
  try {
    in_flight_->rethrow();
    if (!c.over()) in_flight_->progress();
    if (!c.over()) {
      const activity::Wait waiting(name_of(c.what));
      Waiter waiter(c.bytes <= kShortBytes, c.times.wait_began);
      while (!c.over()) {
        if (in_flight_->progress()) {
          waiter.restart();
          continue;
        }
        transport_->pause(waiter, c.what);
        if (waiter.time_to_look()) in_flight_->look();
      }
    }
    if (c.failed) std::rethrow_exception(broken_);
  } catch (...) {
    if (!c.failed) fail(std::current_exception());
    release(c);
    throw;
  }
  c.times.wait_ended = Clock::now();
  seconds_ += seconds_of(c.times.wait_ended - c.times.wait_began);
  if (on_call) on_call(c.what, c.bytes, c.times);
  release(c);
}

void Calls::give_up(Call& c) noexcept {
  if (!c.failed)
    fail(std::make_exception_ptr(BugError(
        fmt::format("call {} of a group, {}, was started and not waited for", c.number, name_of(c.what)))));
  release(c);
}

void Calls::release(Call& c) noexcept {
  free_.push_back(&c);
  in_flight_->settle();
}

// Gives up all calls.
void Calls::fail(const std::exception_ptr& error) noexcept {
  if (!broken_) broken_ = error;
  for (auto* slots : {&slots_, &one_way_})
    for (const auto& s : *slots)
      if (s->call) {
        transport_->withdraw(s->exchange);
        s->call->failed = true;
        s->call = nullptr;
      }
  for (Call* c : waiting_) c->failed = true;
  waiting_.clear();
  in_flight_->remove(*this);
  in_flight_->settle();
}

bool Calls::progress() {
  try {
    if (!transport_->progress()) return false;
    run();
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
  return true;
}

void Calls::look() {
  try {
    transport_->look();
  } catch (...) {
    fail(std::current_exception());
    throw;
  }
}

// Does what can be done now: ends pieces and begins others.
void Calls::run() {
  for (bool any = true; any;) {
    any = false;
    for (auto* slots : {&slots_, &one_way_})
      for (const auto& s : *slots)
        while (s->call && s->exchange.left == 0)
          if (proceed(*s)) any = true;
    any = begin_pieces() || any;
  }
  const auto busy = [](const auto& s) { return s->call != nullptr; };
  if (std::none_of(slots_.begin(), slots_.end(), busy) &&
      std::none_of(one_way_.begin(), one_way_.end(), busy))
    in_flight_->remove(*this);
}

// In the order of the calls. A piece begins if it is less than `most` ahead of the oldest one in flight.
// So between two ranks, messages of at most twice as many pieces can be on their way. In each collective the
// ranks of a host exchange messages with each other, and so do the first ranks of the hosts. So if ranks are
// in different calls, two of them find it.
bool Calls::begin_pieces() {
  const i64 most = pieces_in_flight(std::max(size_, hosts_.most_staged()));
  bool any = false;
  while (!waiting_.empty()) {
    Slot* idle = nullptr;
    u32 ahead = 0;
    for (const auto& s : slots_) {
      if (!s->call && !idle) idle = s.get();
      if (s->call) ahead = std::max(ahead, n_pieces_ - s->exchange.label.piece);
    }
    if (ahead >= most) break;
    if (!idle) idle = slots_.emplace_back(std::make_unique<Slot>()).get();
    Call& c = *waiting_.front();
    begin(*idle, c);
    if (c.begun == c.pieces) waiting_.erase(waiting_.begin());
    any = true;
  }
  return any;
}

void Calls::begin(Slot& s, Call& c) {
  s.call = &c;
  s.index = c.begun++;
  Exchange& x = s.exchange;
  const bool one_way = c.pattern == Pattern::one_way;
  std::vector<u32>& numbers = c.what == Collective::send ? sent_ : received_;
  x.label = {.what = one_way ? Collective::send : c.what,
             .call = c.number,
             .piece = one_way ? numbers[c.root]++ : n_pieces_++,
             .step = on_host,
             .sizes = c.sizes};
  post_step(s);
}

// Posts the messages of this step, or of the next one that has some.
void Calls::post_step(Slot& s) {
  Exchange& x = s.exchange;
  for (; x.label.step < kSteps; ++x.label.step) {
    x.parts.clear();
    x.sends.clear();
    x.receives.clear();
    add_messages(s);
    if (!x.sends.empty() || !x.receives.empty()) break;
    add_sums(s);
  }
  if (x.label.step == kSteps) return;
  for (const Message& m : x.sends) {
    const int host = hosts_.host_of(m.peer);
    if (m.bytes == 0 || host == hosts_.mine()) continue;
    ++traffic[host].messages;
    traffic[host].bytes += m.bytes;
  }
  transport_->post(x);
}

bool Calls::proceed(Slot& s) {
  Exchange& x = s.exchange;
  if (x.label.step < kSteps) {
    add_sums(s);
    transport_->done(x);
    ++x.label.step;
    post_step(s);
    if (x.label.step < kSteps) return false;
  }
  activity::tick();
  Call& c = *s.call;
  s.call = nullptr;
  if (++c.ended == c.pieces) {
    c.times.completed = Clock::now();
    if (transport_->is_process()) call_log::end(c.log);
  }
  return true;
}

}  // namespace redco
