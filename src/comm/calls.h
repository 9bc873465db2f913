// Calls: the calls of one group, from start to wait.
//
// A call is cut into pieces, which limits its memory: a sum takes at most 2 MiB of staging for a piece, and
// at most 8 pieces are in flight; in groups above 64 ranks larger and fewer ones (comm/hosts.h). A piece has
// up to four steps, each an exchange of messages: piece_steps.cpp. comm/hosts.h tells the way of sums over
// hosts. Pieces begin in the order of the calls, which is that of all ranks; so messages with the number of a
// piece belong together. Since one piece never waits for another, pieces may end in any order. Which ends
// first changes no bits.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/hosts.h"
#include "comm/in_flight.h"
#include "comm/sums.h"
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

// out[begin, end) = the sum of terms of n_ranks ranks in all along the tree of comm/sums.h, or their maximum;
// elements of one type. `out` may be one of the terms.
using Sum = void (*)(const Term* terms, int n_ranks, std::byte* out, i64 begin, i64 end);

// How a call moves its data.
enum class Pattern : std::uint8_t {
  sum_whole,    // data to all ranks, each adds everything
  sum_slices,   // slice r is added by rank r, and sent to all
  sum_blocks,   // block r of `out` is added by rank r, into `in`
  blocks,       // block r of `out` goes to rank r, block r of `in` comes from it; rank's own is not moved
  gather,       // block r of `in` goes from rank r to all
  copy_whole,   // data from `root` to all ranks
  copy_slices,  // slice r goes from `root` to rank r, and from there to all
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
  // host_of[r] is the host of rank r.
  Calls(int rank, const std::vector<int>& host_of, std::unique_ptr<Transport> transport,
        std::shared_ptr<InFlight> in_flight);
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
  const Hosts& hosts() const { return hosts_; }
  double seconds_waiting() const { return seconds_; }
  Group::OnCall on_call;
  std::vector<HostTraffic> traffic;  // Group::sent_to_hosts

 private:
  // Of a piece; comm/hosts.h. Calls that are one exchange have it in the first step.
  enum Step : std::uint8_t { on_host, to_owner, from_owner, pass_on, kSteps };
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
  // Slice r of a piece: its bytes, and where this rank has it.
  i64 slice_bytes(const Slot& s, int r) const;
  void cut_slice(const Slot& s, int r, std::vector<Part>& out) const;
  // The slices of a piece that a rank of this host adds the subtrees of this host for; its own is the first.
  std::span<const int> slices_of(const Slot& s, int r) const;
  i64 term_bytes(const Slot& s) const;  // that each other rank of the host sends this one
  std::byte* term_at(const Slot& s, int r) const;
  std::byte* subtree_at(const Slot& s, const Subtree& t) const;
  std::byte* sums_at(const Slot& s, int host) const;  // that come from another host
  bool begin_pieces();
  void begin(Slot& s, Call& c);
  bool proceed(Slot& s);  // after a step is complete; returns whether the piece has ended
  void post_step(Slot& s);
  void add_messages(Slot& s);
  void add_sums(Slot& s);
  void exchange_blocks(Slot& s);
  void send_terms(Slot& s);
  void send_subtrees(Slot& s);
  void send_result(Slot& s);
  void pass_on_results(Slot& s);
  void copy_to_hosts(Slot& s);
  void send_parts(Slot& s, std::size_t first, i64 bytes, int to);
  void receive_parts(Slot& s, std::size_t first, i64 bytes, int from);
  void add_subtrees_of_host(Slot& s);
  void add_all_subtrees(Slot& s);
  void cut_result(const Slot& s);
  void add_terms(const Call& c, int own, i64 bytes);
  void run();
  void fail(const std::exception_ptr& error) noexcept;
  void release(Call& c) noexcept;

  const int rank_, size_;
  const Hosts hosts_;
  std::unique_ptr<Transport> transport_;
  std::shared_ptr<InFlight> in_flight_;
  std::vector<std::unique_ptr<Call>> calls_;
  std::vector<Call*> free_;
  std::vector<Call*> waiting_;                  // calls with pieces that have not begun, in their order
  std::vector<std::unique_ptr<Slot>> slots_;    // of collectives
  std::vector<std::unique_ptr<Slot>> one_way_;  // of send and receive
  std::vector<u32> sent_, received_;            // messages of send and receive, by rank
  // For add_terms.
  std::vector<Term> terms_;
  std::vector<Part> own_, target_;
  std::vector<i64> used_;           // sums of each host that are terms already
  u32 n_calls_ = 0, n_pieces_ = 0;  // so far
  std::exception_ptr broken_;
  double seconds_ = 0;
};

}  // namespace redco
