// Calls: the calls of one group, from start to wait.
//
// A call is cut into pieces, which limits its memory: a sum takes at most 2 MiB of staging for a piece, and
// at most 8 pieces are in flight. A piece is one exchange of messages, or two (sums of large buffers: the
// ranks' parts of a slice go to the rank that adds them; then the sums go to all). Pieces begin in the order
// of the calls, which is that of all ranks; so messages with the number of a piece belong together.
// Since one piece never waits for another, pieces may end in any order. Which ends first changes no bits.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/in_flight.h"
#include "comm/transport.h"

namespace redco {

// Blocks of data, one for each rank, each a list of parts.
class Blocks {
 public:
  void clear() {
    parts_.clear();
    ends_.clear();
  }
  void add(std::byte* data, i64 bytes) {
    if (bytes > 0) parts_.push_back({data, bytes});
    bytes_ += bytes;
  }
  void end_block() {
    ends_.push_back({parts_.size(), bytes_});
    bytes_ = 0;
  }
  void add_block(std::byte* data, i64 bytes) {
    add(data, bytes);
    end_block();
  }
  i64 bytes(int block) const { return ends_[block].bytes; }
  // Appends the bytes [from, from + n) of a block.
  void cut(int block, i64 from, i64 n, std::vector<Part>& out) const;

 private:
  struct End {
    std::size_t part;
    i64 bytes;
  };
  std::vector<Part> parts_;
  std::vector<End> ends_;
  i64 bytes_ = 0;  // of the block that is being added
};

// out[begin, end) = the sum of the ranks' parts along the tree of comm/sums.h, or their maximum; elements of
// one type. `out` may be one of the parts.
using Sum = void (*)(const std::byte* const* parts, int n_parts, std::byte* out, i64 begin, i64 end);

// How a call moves its data.
enum class Pattern : std::uint8_t {
  sum_whole,    // data to all ranks, each adds everything
  sum_slices,   // two exchanges: slices are added by one rank each, and sent to all
  sum_blocks,   // block r of `out` is added by rank r, into `in`
  blocks,       // block r of `out` goes to rank r, block r of `in` comes from it; rank's own is not moved
  gather,       // the same if every rank knows the size of all blocks
  copy_whole,   // data from `root` to all ranks
  copy_slices,  // two exchanges: slices go from `root` to one rank each, and from there to all
  token,        // a byte to and from all ranks
  one_way       // block 0 of `out` to the rank `root`, or block 0 of `in` from it
};

struct Call {
  // ---- Set between Calls::make and Calls::start ----
  Collective what = Collective::barrier;
  Pattern pattern = Pattern::token;
  i64 bytes = 0;  // of the tensor, for the counts
  Blocks out, in;
  std::byte* data = nullptr;  // in place, of n elements
  i64 n = 0, elem = 1;
  Sum sum = nullptr;
  int root = 0;
  u32 sizes = 0;  // Label::sizes
  // ---- State ----
  u32 number = 0;
  u64 log = 0;  // in base/call_log.h
  i64 pieces = 0, begun = 0, ended = 0;
  bool failed = false;
  CallTimes times;
  bool over() const { return failed || ended == pieces; }
};

class Calls {
 public:
  Calls(int rank, int size, std::unique_ptr<Transport> transport, std::shared_ptr<InFlight> in_flight);
  ~Calls();
  Calls(const Calls&) = delete;

  // A call to fill in and start. Throws if the group has failed.
  Call& make(Collective what, Pattern pattern, i64 bytes);
  Started start(Call& call);
  void wait(Call& call);
  void give_up(Call& call) noexcept;

  // For InFlight. progress() throws what makes the group fail.
  bool progress();
  void look();

  Transport& transport() { return *transport_; }
  double seconds_waiting() const { return seconds_; }
  Group::OnCall on_call;

 private:
  // A piece in flight, and its memory, which is kept for the next one.
  struct Slot {
    Call* call = nullptr;  // null: free
    i64 index = 0;         // of the piece in its call
    Exchange exchange;
    std::unique_ptr<std::byte[]> staging;
    i64 staging_bytes = 0;
    std::byte token{};
    std::byte* stage(i64 bytes);
  };

  i64 pieces_of(const Call& c) const;
  i64 elements_per_piece(const Call& c) const;
  std::pair<i64, i64> piece_of(const Slot& s) const;  // first element and number of elements
  bool begin_pieces();
  void begin(Slot& s, Call& c);
  bool proceed(Slot& s);  // after an exchange is complete; returns whether the piece has ended
  void first_exchange(Slot& s);
  void add_sums(Slot& s);
  bool second_exchange(Slot& s);  // false: there is none
  void run();
  void fail(const std::exception_ptr& error) noexcept;
  void release(Call& c) noexcept;

  const int rank_, size_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<InFlight> in_flight_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> free_;
  std::vector<Call*> waiting_;                  // calls with pieces that have not begun, in their order
  std::vector<std::unique_ptr<Slot>> slots_;    // of collectives
  std::vector<std::unique_ptr<Slot>> one_way_;  // of send and receive
  std::vector<u32> sent_, received_;            // messages of send and receive, by rank
  std::vector<const std::byte*> terms_;
  std::vector<Part> own_, target_;
  u32 n_calls_ = 0, n_pieces_ = 0;  // so far
  std::exception_ptr broken_;
  double seconds_ = 0;
};

}  // namespace redco
