#include "comm/calls.h"

#include <algorithm>
#include <cstring>

#include "base/activity.h"
#include "base/call_log.h"
#include "base/error.h"
#include "base/parallel.h"

namespace redco {

namespace {

using Clock = std::chrono::steady_clock;

// Pieces in flight, and the staging memory of each; together at most 16 MiB. The sum of an element does not
// depend on the pieces. Between two ranks, messages of at most twice kPieces pieces can be on their way.
constexpr std::size_t kPieces = 8;
constexpr i64 kPieceBytes = i64{2} << 20;
constexpr i64 kShortBytes = 4096;

// Border i of n elements split into `parts`, larger parts first.
i64 border(i64 n, i64 parts, i64 i) { return n / parts * i + std::min(i, n % parts); }

void add_message(std::vector<Message>& list, Exchange& x, int peer, Part part) {
  const int first = static_cast<int>(x.parts.size());
  if (part.bytes > 0) x.parts.push_back(part);
  list.push_back({peer, part.bytes, first, part.bytes > 0 ? 1 : 0});
}

// A message that is read once, as a term of a sum.
void add_term(Exchange& x, int peer, Part part) {
  add_message(x.receives, x, peer, part);
  x.receives.back().at = part.data;
}

void add_message(std::vector<Message>& list, Exchange& x, int peer, const Blocks& blocks, int block, i64 from,
                 i64 bytes) {
  const int first = static_cast<int>(x.parts.size());
  blocks.cut(block, from, bytes, x.parts);
  list.push_back({peer, bytes, first, static_cast<int>(x.parts.size()) - first});
}

double seconds_of(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

void Blocks::cut(int block, i64 from, i64 n, std::vector<Part>& out) const {
  for (std::size_t i = block == 0 ? 0 : ends_[block - 1].part; i < ends_[block].part && n > 0; ++i) {
    const Part& p = parts_[i];
    if (from >= p.bytes) {
      from -= p.bytes;
      continue;
    }
    const i64 m = std::min(n, p.bytes - from);
    out.push_back({p.data + from, m});
    n -= m;
    from = 0;
  }
}

std::byte* Calls::Slot::stage(i64 bytes) {
  if (bytes > staging_bytes) {
    staging.reset();
    staging_bytes = 0;
    staging.reset(new std::byte[static_cast<std::size_t>(bytes)]);
    staging_bytes = bytes;
  }
  return staging.get();
}

Calls::Calls(int rank, int size, std::unique_ptr<Transport> transport, std::shared_ptr<InFlight> in_flight)
    : rank_(rank),
      size_(size),
      transport_(std::move(transport)),
      in_flight_(std::move(in_flight)),
      sent_(static_cast<std::size_t>(size)),
      received_(static_cast<std::size_t>(size)) {}

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

// In the order of the calls. A piece begins if it is less than kPieces ahead of the oldest one in flight.
bool Calls::begin_pieces() {
  bool any = false;
  while (!waiting_.empty()) {
    Slot* idle = nullptr;
    u32 ahead = 0;
    for (const auto& s : slots_) {
      if (!s->call && !idle) idle = s.get();
      if (s->call) ahead = std::max(ahead, n_pieces_ - s->exchange.label.piece);
    }
    if (ahead >= kPieces) break;
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
             .second = false,
             .sizes = c.sizes};
  x.parts.clear();
  x.sends.clear();
  x.receives.clear();
  first_exchange(s);
  transport_->post(x);
}

bool Calls::proceed(Slot& s) {
  Exchange& x = s.exchange;
  if (!x.label.second) {
    add_sums(s);
    transport_->done(x);
    x.parts.clear();
    x.sends.clear();
    x.receives.clear();
    x.label.second = true;
    if (second_exchange(s)) {
      transport_->post(x);
      return false;
    }
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

i64 Calls::elements_per_piece(const Call& c) const {
  const bool of_block = c.pattern == Pattern::sum_blocks || c.pattern == Pattern::gather;
  return of_block ? std::max<i64>(1, kPieceBytes / c.elem / size_) : kPieceBytes / c.elem;
}

i64 Calls::pieces_of(const Call& c) const {
  i64 n = c.n;
  switch (c.pattern) {
    case Pattern::sum_blocks:
      n = 0;
      for (int r = 0; r < size_; ++r) n = std::max(n, c.out.bytes(r) / c.elem);
      return ceil_div(n, elements_per_piece(c));
    case Pattern::gather:
      n = 0;
      for (int r = 0; r < size_; ++r) n = std::max(n, c.in.bytes(r) / c.elem);
      [[fallthrough]];
    case Pattern::sum_slices:
    case Pattern::copy_slices:
      return ceil_div(n, elements_per_piece(c));
    default:
      return 1;
  }
}

std::pair<i64, i64> Calls::piece_of(const Slot& s) const {
  const i64 piece = elements_per_piece(*s.call), first = s.index * piece;
  return {first, std::min(piece, s.call->n - first)};
}

// The order of partners differs between ranks, so that they do not all send to rank 0 first.
void Calls::first_exchange(Slot& s) {
  const Call& c = *s.call;
  Exchange& x = s.exchange;
  const auto each = [&](const auto& f) {
    for (int k = 1; k < size_; ++k) f((rank_ + k) % size_, (rank_ - k + size_) % size_);
  };
  switch (c.pattern) {
    case Pattern::sum_whole: {
      const i64 bytes = c.n * c.elem;
      std::byte* at = s.stage(bytes * (size_ - 1));
      each([&](int to, int from) {
        add_message(x.sends, x, to, {c.data, bytes});
        add_term(x, from, {at + (from - (from > rank_)) * bytes, bytes});
      });
      break;
    }
    case Pattern::sum_slices: {
      const auto [first, n] = piece_of(s);
      std::byte* const piece = c.data + first * c.elem;
      const auto slice = [&](i64 r) { return border(n, size_, r) * c.elem; };
      const i64 mine = slice(rank_ + 1) - slice(rank_);
      std::byte* const at = s.stage(mine * (size_ - 1));
      each([&](int to, int from) {
        add_message(x.sends, x, to, {piece + slice(to), slice(to + 1) - slice(to)});
        add_term(x, from, {at + (from - (from > rank_)) * mine, mine});
      });
      break;
    }
    case Pattern::sum_blocks: {
      const i64 piece = elements_per_piece(c) * c.elem, first = s.index * piece;
      const auto bytes = [&](int r) { return std::clamp<i64>(c.out.bytes(r) - first, 0, piece); };
      const i64 mine = bytes(rank_);
      std::byte* const at = s.stage(mine * (size_ - 1));
      each([&](int to, int from) {
        add_message(x.sends, x, to, c.out, to, first, bytes(to));
        add_term(x, from, {at + (from - (from > rank_)) * mine, mine});
      });
      break;
    }
    case Pattern::blocks:
      each([&](int to, int from) {
        add_message(x.sends, x, to, c.out, to, 0, c.out.bytes(to));
        add_message(x.receives, x, from, c.in, from, 0, c.in.bytes(from));
      });
      break;
    case Pattern::gather: {
      const i64 piece = elements_per_piece(c) * c.elem, first = s.index * piece;
      const auto bytes = [&](int r) { return std::clamp<i64>(c.in.bytes(r) - first, 0, piece); };
      each([&](int to, int from) {
        add_message(x.sends, x, to, c.out, to, first, bytes(rank_));
        add_message(x.receives, x, from, c.in, from, first, bytes(from));
      });
      break;
    }
    case Pattern::copy_whole:
      each([&](int to, int from) {
        add_message(x.sends, x, to, {c.data, rank_ == c.root ? c.n : 0});
        add_message(x.receives, x, from, {c.data, from == c.root ? c.n : 0});
      });
      break;
    case Pattern::copy_slices: {
      const auto [first, n] = piece_of(s);
      std::byte* const piece = c.data + first;
      const i64 size = n;
      const auto slice = [&](i64 r) { return border(size, size_, r); };
      each([&](int to, int from) {
        add_message(x.sends, x, to, {piece + slice(to), rank_ == c.root ? slice(to + 1) - slice(to) : 0});
        add_message(x.receives, x, from,
                    {piece + slice(rank_), from == c.root ? slice(rank_ + 1) - slice(rank_) : 0});
      });
      break;
    }
    case Pattern::token: {
      std::byte* const at = s.stage(size_);
      each([&](int to, int from) {
        add_message(x.sends, x, to, {&s.token, 1});
        add_message(x.receives, x, from, {at + from, 1});
      });
      break;
    }
    case Pattern::one_way:
      if (c.what == Collective::send)
        add_message(x.sends, x, c.root, c.out, 0, 0, c.out.bytes(0));
      else
        add_message(x.receives, x, c.root, c.in, 0, 0, c.in.bytes(0));
      break;
  }
}

// Adds what the first exchange has brought.
void Calls::add_sums(Slot& s) {
  const Call& c = *s.call;
  const auto add = [&](std::byte* own, std::byte* out, i64 from, i64 bytes) {
    terms_.resize(static_cast<std::size_t>(size_));
    terms_[rank_] = own;
    for (const Message& m : s.exchange.receives) terms_[m.peer] = m.at + from;
    parallel::for_blocks(bytes / c.elem, c.elem,
                         [&](i64 begin, i64 end) { c.sum(terms_.data(), size_, out, begin, end); });
  };
  if (c.pattern == Pattern::sum_whole) {
    add(c.data, c.data, 0, c.n * c.elem);
  } else if (c.pattern == Pattern::sum_slices) {
    const auto [first, n] = piece_of(s);
    const i64 begin = border(n, size_, rank_), bytes = (border(n, size_, rank_ + 1) - begin) * c.elem;
    std::byte* const own = c.data + (first + begin) * c.elem;
    add(own, own, 0, bytes);
  } else if (c.pattern == Pattern::sum_blocks) {
    const i64 piece = elements_per_piece(c) * c.elem, first = s.index * piece;
    const i64 bytes = std::clamp<i64>(c.out.bytes(rank_) - first, 0, piece);
    own_.clear();
    target_.clear();
    c.out.cut(rank_, first, bytes, own_);
    c.in.cut(0, first, bytes, target_);
    // Stretches that are contiguous in both.
    i64 done = 0;
    for (std::size_t i = 0, j = 0; done < bytes;) {
      Part &from = own_[i], &to = target_[j];
      const i64 m = std::min(from.bytes, to.bytes);
      add(from.data, to.data, done, m);
      done += m;
      from = {from.data + m, from.bytes - m};
      to = {to.data + m, to.bytes - m};
      i += from.bytes == 0;
      j += to.bytes == 0;
    }
  }
}

bool Calls::second_exchange(Slot& s) {
  const Call& c = *s.call;
  if (c.pattern != Pattern::sum_slices && c.pattern != Pattern::copy_slices) return false;
  Exchange& x = s.exchange;
  const auto [first, n] = piece_of(s);
  std::byte* const piece = c.data + first * c.elem;
  const bool copies = c.pattern == Pattern::copy_slices;
  const i64 size = n;
  // The root of a copy has every slice.
  const auto slice = [&](int r, int receiver) -> Part {
    const i64 begin = border(size, size_, r) * c.elem, end = border(size, size_, r + 1) * c.elem;
    return {piece + begin, copies && receiver == c.root ? 0 : end - begin};
  };
  for (int k = 1; k < size_; ++k) {
    const int to = (rank_ + k) % size_, from = (rank_ - k + size_) % size_;
    add_message(x.sends, x, to, slice(rank_, to));
    add_message(x.receives, x, from, slice(from, rank_));
  }
  return true;
}

}  // namespace redco
