#include "comm/host_link.h"

#include <algorithm>
#include <cstring>

#include "base/parallel.h"

namespace redco {

namespace {

constexpr i64 kLine = 64;
constexpr i64 kRingBytes = i64{64} << 10, kHereBytes = 4096;
constexpr i64 kPoolBytes = i64{16} << 20, kPooledBytes = i64{2} << 20, kPoolUnit = 256;
constexpr i64 kChunkBytes = i64{256} << 10, kStreamBytes = i64{1} << 20;
constexpr u32 kChunks = 4;      // their tickets are the first ones
constexpr u32 kTickets = 4096;  // a message that finds none waits
constexpr i64 kTicketsAt = kProofBytes;
constexpr i64 kRingsAt = kTicketsAt + kTickets * i64{sizeof(u32)};

i64 round_up(i64 n, i64 unit) { return ceil_div(n, unit) * unit; }

// Copies n bytes between a message's parts, from where `c` is, and `at`.
template <class F>
void advance(PartCursor& c, i64 n, const F& f) {
  while (n > 0) {
    const Part& p = c.parts.front();
    const i64 m = std::min(n, p.bytes - c.used);
    f(p.data + c.used, m);
    n -= m;
    c.used += m;
    if (c.used == p.bytes) c = {c.parts.subspan(1), 0};
  }
}
void copy(const std::byte* from, std::byte* to, i64 n) {
  parallel::for_blocks(n, 1, [&](i64 begin, i64 end) {
    std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
  });
}
void copy_in(PartCursor& c, i64 n, std::byte* at) {
  advance(c, n, [&](const std::byte* part, i64 m) {
    copy(part, at, m);
    at += m;
  });
}
void copy_out(const std::byte* at, PartCursor& c, i64 n) {
  advance(c, n, [&](std::byte* part, i64 m) {
    copy(at, part, m);
    at += m;
  });
}

bool same(const Label& a, const Label& b) {
  return a.what == b.what && a.call == b.call && a.piece == b.piece && a.step == b.step && a.sizes == b.sizes;
}

bool same(std::span<const Part> a, std::span<const Part> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Part& x, const Part& y) { return x.data == y.data && x.bytes == y.bytes; });
}

}  // namespace

// What its writer has written and its reader has read, in bytes since the start, and the records.
struct HostLink::Ring {
  alignas(kLine) std::atomic<u64> written;
  alignas(kLine) std::atomic<u64> read;
  alignas(kLine) std::byte data[kRingBytes];
};

i64 HostLink::segment_bytes(int n_ranks) {
  return round_up(kRingsAt + n_ranks * i64{sizeof(Ring)} + kChunks * kChunkBytes, 4096) + kPoolBytes;
}

std::atomic<u32>& HostLink::ticket(int owner, u32 t) const {
  static_assert(sizeof(std::atomic<u32>) == sizeof(u32) && std::atomic<u32>::is_always_lock_free);
  return reinterpret_cast<std::atomic<u32>*>(segment(owner) + kTicketsAt)[t];
}
HostLink::Ring& HostLink::ring(int writer, int reader) const {
  return reinterpret_cast<Ring*>(segment(writer) + kRingsAt)[reader];
}
std::byte* HostLink::pool(int owner) const { return segment(owner) + segment_bytes(size_) - kPoolBytes; }

HostLink::HostLink(std::unique_ptr<HostMemory> memory)
    : memory_(std::move(memory)),
      rank_(memory_->rank),
      size_(static_cast<int>(memory_->ranks.size())),
      queues_(static_cast<std::size_t>(size_)),
      written_(static_cast<std::size_t>(size_)),
      read_(written_),
      readers_at_(written_) {
  for (u32 t = kTickets; t > kChunks; --t) free_tickets_.push_back(t - 1);
}

int HostLink::rank_of(int world_rank) const {
  const auto& r = memory_->ranks;
  const auto at = std::lower_bound(r.begin(), r.end(), world_rank);
  return at != r.end() && *at == world_rank ? static_cast<int>(at - r.begin()) : -1;
}

HostLink::Inbox& HostLink::open(u64 group) {
  auto& box = boxes_[group];
  if (!box) {
    box = std::make_unique<Inbox>();
    box->group = group;
  }
  return *box;
}

void HostLink::close(Inbox& box) noexcept {
  for (const Inbox::Letter& l : box.letters)
    if (l.record.kind == HostRecord::Kind::pooled) taken(l.from, l.record.ticket);
  boxes_.erase(box.group);
}

// ---- Sending ----

void HostLink::send(Inbox& box, Exchange& x, const Message& m, int to) {
  Outgoing o{&box, &x, x.label, m.bytes, x.parts_of(m), to};
  const Put result = queues_[to].empty() ? put(o) : Put::full;
  if (result != Put::complete) ++x.left;
  if (result == Put::full) queues_[to].push_back(o);
}

HostLink::Put HostLink::put(Outgoing& o) {
  HostRecord r{.length = 0,
               .ticket = 0,
               .chunk_ticket = 0,
               .group = o.box->group,
               .bytes = o.bytes,
               .at = 0,
               .label = o.label,
               .kind = HostRecord::Kind::here};
  if (o.bytes <= kHereBytes) return write(o.to, r, o.parts) ? Put::complete : Put::full;
  if (!has_room(o.to, 0) || !take_ticket(o.ticket)) return Put::full;
  r.ticket = o.ticket;
  r.at = o.bytes <= kPooledBytes ? place(o) : -1;
  r.kind = r.at >= 0 ? HostRecord::Kind::pooled : HostRecord::Kind::announced;
  write(o.to, r, {});
  if (r.at >= 0) return Put::complete;
  o.rest = {o.parts, 0};
  o.left = o.bytes;
  announced_.push_back(o);
  return Put::announced;
}

bool HostLink::has_room(int to, i64 payload) {
  const u64 length = static_cast<u64>(kLine + round_up(payload, kLine));
  const u64 rest = kRingBytes - written_[to] % kRingBytes;
  const u64 end = written_[to] + length + (rest < length ? rest : 0);
  if (end - readers_at_[to] <= kRingBytes) return true;
  readers_at_[to] = ring(rank_, to).read.load(std::memory_order_acquire);
  return end - readers_at_[to] <= kRingBytes;
}

// Writes a record and the message in it. Returns false if the ring has no room.
bool HostLink::write(int to, HostRecord record, std::span<const Part> parts) {
  const bool here = record.kind == HostRecord::Kind::here;
  const i64 payload = here ? record.bytes : 0;
  if (!has_room(to, payload)) return false;
  Ring& out = ring(rank_, to);
  record.length = static_cast<u32>(kLine + round_up(payload, kLine));
  u64& end = written_[to];
  if (const u64 rest = kRingBytes - end % kRingBytes; rest < record.length) {
    const HostRecord skip{.length = static_cast<u32>(rest), .kind = HostRecord::Kind::skip};
    std::memcpy(out.data + end % kRingBytes, &skip, sizeof skip);
    end += rest;
  }
  std::byte* const at = out.data + end % kRingBytes;
  std::memcpy(at, &record, sizeof record);
  if (here) {
    PartCursor from{parts, 0};
    copy_in(from, payload, at + kLine);
  }
  end += record.length;
  out.written.store(end, std::memory_order_release);
  return true;
}

bool HostLink::take_ticket(u32& t) {
  if (free_tickets_.empty()) reclaim();
  if (free_tickets_.empty()) return false;
  t = free_tickets_.back();
  free_tickets_.pop_back();
  ticket(rank_, t).store(kFree, std::memory_order_relaxed);
  return true;
}

// The first place that is large enough: so little memory is touched if little is in flight.
i64 HostLink::room_for(i64 bytes) const {
  i64 at = 0;
  for (const auto& [begin, block] : blocks_) {
    if (begin - at >= bytes) break;
    at = begin + round_up(block.bytes, kPoolUnit);
  }
  return at + bytes <= kPoolBytes ? at : -1;
}

// Copies a message to the pool; -1: no room.
i64 HostLink::place(const Outgoing& o) {
  if (last_of_ != o.of || !same(last_parts_, o.parts)) {
    reclaim();
    const i64 at = room_for(o.bytes);
    if (at < 0) return at;
    PartCursor from{o.parts, 0};
    copy_in(from, o.bytes, pool(rank_) + at);
    blocks_[at] = {o.bytes, 0};
    last_of_ = o.of;
    last_parts_ = o.parts;
    last_at_ = at;
  }
  ++blocks_[last_at_].readers;
  placed_.push_back({o.ticket, last_at_});
  return last_at_;
}

void HostLink::reclaim() {
  std::erase_if(placed_, [&](const Placed& p) {
    if (ticket(rank_, p.ticket).load(std::memory_order_acquire) != kTaken) return false;
    const auto block = blocks_.find(p.at);
    if (--block->second.readers == 0) {
      if (last_at_ == p.at) last_of_ = nullptr;
      blocks_.erase(block);
    }
    free_tickets_.push_back(p.ticket);
    return true;
  });
}

// A place for a chunk: in the pool, or one of the chunks before it, which are never used for anything else.
bool HostLink::take_chunk_place(i64 bytes, HostRecord& r) {
  reclaim();
  r.bytes = std::min(bytes, kStreamBytes);
  r.at = room_for(r.bytes);
  if (r.at >= 0 && take_ticket(r.chunk_ticket)) {
    blocks_[r.at] = {r.bytes, 1};
    placed_.push_back({r.chunk_ticket, r.at});
    return true;
  }
  for (u32 chunk = 0; chunk < kChunks; ++chunk) {
    std::atomic<u32>& state = ticket(rank_, chunk);
    if (state.load(std::memory_order_acquire) == kWanted) continue;
    state.store(kWanted, std::memory_order_relaxed);
    r.chunk_ticket = chunk;
    r.bytes = std::min(bytes, kChunkBytes);
    r.at = -(i64{chunk} + 1) * kChunkBytes;
    return true;
  }
  return false;
}

// Writes the next chunk of a message that was asked for. Returns whether it could.
bool HostLink::stream(Outgoing& o) {
  HostRecord r{.length = 0,
               .ticket = o.ticket,
               .chunk_ticket = 0,
               .group = o.box->group,
               .bytes = 0,
               .at = 0,
               .label = o.label,
               .kind = HostRecord::Kind::chunk};
  if (!has_room(o.to, 0) || !take_chunk_place(o.left, r)) return false;
  copy_in(o.rest, r.bytes, pool(rank_) + r.at);
  o.left -= r.bytes;
  return write(o.to, r, {});
}

// ---- Receiving ----

void HostLink::receive(Inbox& box, Exchange& x, Message& m, int from) {
  ++x.left;
  const Inbox::Expected e{&x, &m, from, x.label};
  const auto letter = std::find_if(box.letters.begin(), box.letters.end(), [&](const Inbox::Letter& l) {
    return l.from == from && l.record.bytes == m.bytes && same(l.record.label, e.label);
  });
  if (letter == box.letters.end()) {
    box.expected.push_back(e);
    return;
  }
  take(box, e, letter->record, letter->copy.get());
  box.letters.erase(letter);
}

void HostLink::drain(int from) {
  Ring& in = ring(from, rank_);
  const u64 end = in.written.load(std::memory_order_acquire);
  u64& at = read_[from];
  if (at == end) return;
  while (at < end) {
    const std::byte* const p = in.data + at % kRingBytes;
    HostRecord r;
    std::memcpy(&r, p, sizeof r);
    if (r.kind == HostRecord::Kind::chunk)
      take_chunk(from, r);
    else if (r.kind != HostRecord::Kind::skip)
      arrive(from, r, p + kLine);
    at += r.length;
  }
  in.read.store(at, std::memory_order_release);
}

void HostLink::arrive(int from, const HostRecord& r, const std::byte* payload) {
  Inbox& box = open(r.group);
  const auto e = std::find_if(box.expected.begin(), box.expected.end(), [&](const Inbox::Expected& e) {
    return e.from == from && e.message->bytes == r.bytes && same(e.label, r.label);
  });
  if (e != box.expected.end()) {
    const Inbox::Expected found = *e;
    box.expected.erase(e);
    return take(box, found, r, payload);
  }
  Inbox::Letter letter{from, r, nullptr};
  if (r.kind == HostRecord::Kind::here) {
    letter.copy.reset(new std::byte[static_cast<std::size_t>(r.bytes)]);
    std::memcpy(letter.copy.get(), payload, static_cast<std::size_t>(r.bytes));
  }
  box.letters.push_back(std::move(letter));
}

void HostLink::take(Inbox& box, const Inbox::Expected& e, const HostRecord& r, const std::byte* payload) {
  PartCursor to{e.of->parts_of(*e.message), 0};
  switch (r.kind) {
    case HostRecord::Kind::here:
      copy_out(payload, to, r.bytes);
      break;
    case HostRecord::Kind::pooled:
      if (e.message->at) {
        e.message->at = pool(e.from) + r.at;
        box.lent.push_back({e.of, e.from, r.ticket});
      } else {
        copy_out(pool(e.from) + r.at, to, r.bytes);
        taken(e.from, r.ticket);
      }
      break;
    default:
      incoming_.push_back({&box, e.of, e.from, r.ticket, to, r.bytes});
      ticket(e.from, r.ticket).store(kWanted, std::memory_order_release);
      return;
  }
  complete(box, *e.of);
}

void HostLink::take_chunk(int from, const HostRecord& r) {
  const auto in = std::find_if(incoming_.begin(), incoming_.end(),
                               [&](const Incoming& i) { return i.from == from && i.ticket == r.ticket; });
  if (in != incoming_.end()) {  // else it was withdrawn
    copy_out(pool(from) + r.at, in->rest, r.bytes);
    in->left -= r.bytes;
    if (in->left == 0) {
      complete(*in->box, *in->of);
      incoming_.erase(in);
    }
  }
  taken(from, r.chunk_ticket);
}

void HostLink::progress() {
  begin_exchange();
  for (int r = 0; r < size_; ++r) {
    if (r == rank_) continue;
    drain(r);
    for (auto& queue = queues_[r]; !queue.empty();) {
      Outgoing& o = queue.front();
      const Put result = put(o);
      if (result == Put::full) break;
      if (result == Put::complete) complete(*o.box, *o.of);
      queue.pop_front();
    }
  }
  // In turn, so that no message waits for all of another one.
  for (std::size_t tries = announced_.size(); tries > 0; --tries) {
    const std::size_t i = turn_ % announced_.size();
    Outgoing& o = announced_[i];
    turn_ = i + 1;
    if (ticket(rank_, o.ticket).load(std::memory_order_acquire) != kWanted || !stream(o)) continue;
    tries = announced_.size() + 1;
    if (o.left > 0) continue;
    complete(*o.box, *o.of);
    free_tickets_.push_back(o.ticket);
    announced_.erase(announced_.begin() + static_cast<std::ptrdiff_t>(i));
    turn_ = i;
    if (announced_.empty()) break;
  }
}

void HostLink::done(Inbox& box, Exchange& x) noexcept {
  std::erase_if(box.lent, [&](const Inbox::Lent& l) {
    if (l.of != &x) return false;
    taken(l.from, l.ticket);
    return true;
  });
}

// What lies in the segment stays there; the receiver may still take it. A message that was only announced is
// never sent.
void HostLink::withdraw(Inbox& box, Exchange& x) noexcept {
  done(box, x);
  std::erase_if(box.expected, [&](const Inbox::Expected& e) { return e.of == &x; });
  std::erase_if(incoming_, [&](const Incoming& i) { return i.of == &x; });
  std::erase_if(announced_, [&](const Outgoing& o) { return o.of == &x; });
  for (auto& queue : queues_) std::erase_if(queue, [&](const Outgoing& o) { return o.of == &x; });
}

}  // namespace redco
