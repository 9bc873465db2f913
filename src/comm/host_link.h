// HostLink: the messages between this rank and the others of its host, through the memory that they share.
// One link serves all groups of a world, so its memory does not grow with the number of groups.
//
// A rank writes to its own segment only, except for two kinds of words: how far it has read, and what it has
// taken. A segment holds
// - a ring of records for each reader. A record announces a message; a short message is in it.
// - a pool of 16 MiB for messages of up to 2 MiB. A message is copied there once, also if it goes to several
//   ranks, and is then complete for the sender. The receiver copies it out, or reads it where it lies.
// - four chunks of 256 KiB. Larger messages, and messages that find the pool full, are only announced. When
//   the receiver asks for one, it flows through the pool and these chunks. So a chunk is always read soon,
//   and messages that nobody receives yet never block another one.
// - tickets: one word for each message in the pool, in chunks, or announced. The receiver writes there that
//   it wants the message, or has taken it.
// Only the rank's thread calls it.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

#include "comm/host_memory.h"
#include "comm/transport.h"

namespace redco {

// A place in the parts of a message.
struct PartCursor {
  std::span<const Part> parts;
  i64 used = 0;  // of parts[0]
};

// How a message lies in a segment.
struct HostRecord {
  enum class Kind : std::uint8_t {
    skip,       // to the end of the ring
    here,       // the message follows
    pooled,     // at `at` in the pool
    announced,  // the receiver asks for it
    chunk       // of a message that was asked for: `bytes` bytes at `at`
  };
  u32 length;  // in the ring
  u32 ticket;
  u32 chunk_ticket;
  u64 group;
  i64 bytes;  // of the message; of the chunk
  i64 at;     // in the pool; before it: in a chunk
  Label label;
  Kind kind;
};
static_assert(sizeof(HostRecord) <= 64);

class HostLink {
 public:
  // The messages of a group.
  struct Inbox {
    u64 group = 0;
    bool news = false;  // a message is complete now
    struct Expected {
      Exchange* of;
      Message* message;
      int from;  // rank of the host
      Label label;
    };
    std::vector<Expected> expected;  // in the order in which they were posted
    struct Letter {
      int from;
      HostRecord record;
      std::unique_ptr<std::byte[]> copy;  // of a message that was in the ring
    };
    std::vector<Letter> letters;  // nobody expects them yet
    struct Lent {
      Exchange* of;
      int from;
      u32 ticket;
    };
    std::vector<Lent> lent;  // read where they lie
  };

  explicit HostLink(std::unique_ptr<HostMemory> memory);
  static i64 segment_bytes(int n_ranks);
  // Its rank of the host, or -1.
  int rank_of(int world_rank) const;

  Inbox& open(u64 group);
  void close(Inbox& box) noexcept;

  // Begin a message of x; x.left counts it until it is complete. Sends with the same parts since
  // begin_exchange() are copied once.
  void begin_exchange() { last_of_ = nullptr; }
  void send(Inbox& box, Exchange& x, const Message& m, int to);
  void receive(Inbox& box, Exchange& x, Message& m, int from);
  // Moves what can be moved without waiting, for all groups.
  void progress();
  void done(Inbox& box, Exchange& x) noexcept;
  void withdraw(Inbox& box, Exchange& x) noexcept;

 private:
  struct Outgoing {
    Inbox* box;
    Exchange* of;
    Label label;
    i64 bytes;
    std::span<const Part> parts;
    int to;
    u32 ticket = 0;
    PartCursor rest{};  // what is not in a chunk yet
    i64 left = 0;
  };
  struct Incoming {
    Inbox* box;
    Exchange* of;
    int from;
    u32 ticket;
    PartCursor rest;
    i64 left;
  };
  struct Block {
    i64 bytes;
    int readers;
  };
  struct Ring;
  enum class Put : std::uint8_t { full, complete, announced };

  std::byte* segment(int rank) const { return memory_->segments[rank].data(); }
  std::atomic<u32>& ticket(int owner, u32 t) const;
  Ring& ring(int writer, int reader) const;
  std::byte* pool(int owner) const;

  Put put(Outgoing& o);
  bool write(int to, HostRecord record, std::span<const Part> parts);
  bool has_room(int to, i64 payload);
  bool stream(Outgoing& o);
  bool take_ticket(u32& t);
  i64 room_for(i64 bytes) const;  // a place in the pool, or -1
  i64 place(const Outgoing& o);
  bool take_chunk_place(i64 bytes, HostRecord& r);
  void reclaim();
  void drain(int from);
  void arrive(int from, const HostRecord& r, const std::byte* payload);
  void take_chunk(int from, const HostRecord& r);
  void take(Inbox& box, const Inbox::Expected& e, const HostRecord& r, const std::byte* payload);
  void taken(int owner, u32 t) const { ticket(owner, t).store(kTaken, std::memory_order_release); }
  static void complete(Inbox& box, Exchange& x) {
    --x.left;
    box.news = true;
  }

  static constexpr u32 kFree = 0, kWanted = 1, kTaken = 2;
  std::unique_ptr<HostMemory> memory_;
  const int rank_, size_;
  std::unordered_map<u64, std::unique_ptr<Inbox>> boxes_;
  std::vector<std::deque<Outgoing>> queues_;  // by reader: what its ring or the tickets had no room for
  std::vector<Outgoing> announced_;
  std::vector<Incoming> incoming_;
  std::vector<u64> written_, read_, readers_at_;  // my ring for a reader; its ring for me; how far it was
  std::vector<u32> free_tickets_;
  struct Placed {
    u32 ticket;
    i64 at;
  };
  std::vector<Placed> placed_;   // messages in the pool that may not be taken yet
  std::map<i64, Block> blocks_;  // of the pool, by place
  // The block of the last message in the pool, if the next one may share it.
  const Exchange* last_of_ = nullptr;
  std::span<const Part> last_parts_;
  i64 last_at_ = -1;
  std::size_t turn_ = 0;  // of announced_
};

}  // namespace redco
