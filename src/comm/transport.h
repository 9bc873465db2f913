// Transport: moves messages between the ranks of a group. A backend of Group is a Transport; what the
// messages mean is known in comm/calls.h alone.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "comm/group.h"
#include "comm/waiter.h"

namespace redco {

// Contiguous memory.
struct Part {
  std::byte* data;
  i64 bytes;
};

// What messages belong to. It is equal on both sides, or the ranks do not run the same program.
struct Label {
  Collective what = Collective::barrier;  // never receive: both sides of a message say send
  u32 call = 0;                           // number of the call in its group, from 1; 0: send and receive
  u32 piece = 0;          // number of the piece among those of all calls; send and receive: number of the
                          // message from the one rank to the other
  std::uint8_t step = 0;  // of the piece
  u32 sizes = 0;          // a hash of the sizes of the whole call
};

// A message to or from one rank: the parts [first, first + n) of its exchange, in this order. The two sides
// may cut it into other parts.
struct Message {
  int peer;
  i64 bytes;
  int first, n;
  // Of a receive whose data are only read once: where they lie when it is complete. It has one part, at this
  // address; a transport may leave the data where they are instead, until done(), and set another address.
  // Null: the parts get the data.
  const std::byte* at = nullptr;
};

// Messages that are posted together.
struct Exchange {
  Label label;
  std::vector<Part> parts;
  std::vector<Message> sends, receives;
  int left = 0;  // messages that are not complete: set by post(), lowered by progress()

  std::span<const Part> parts_of(const Message& m) const {
    return std::span(parts).subspan(static_cast<std::size_t>(m.first), static_cast<std::size_t>(m.n));
  }
};

class Transport {
 public:
  virtual ~Transport() = default;
  // Begins to move the messages. x and the memory must not change until x.left is 0 or withdraw(x) has
  // returned. Of two ranks, the one's sends to the other with one label meet the other's receives in the
  // order in which they are posted.
  virtual void post(Exchange& x) = 0;
  // Moves what can be moved without waiting. Returns whether a message is complete now that was not before.
  virtual bool progress() = 0;
  // All receives of x are complete, and data left in place (Message::at) are not read any more.
  virtual void done(Exchange&) {}
  // Nothing has moved in any group: lets others run. Throws if the call waits for a rank that has failed.
  virtual void pause(Waiter& waiter, Collective what) = 0;
  // In a long wait, about ten times a second: throws if a rank is in another call than this one.
  virtual void look() {}
  // The messages of x are given up: its memory is not used any more. (A sent message may have arrived.)
  virtual void withdraw(Exchange& x) noexcept = 0;
  // The transport of the ranks with this rank's color. Collective; colors[r] is that of rank r.
  virtual std::unique_ptr<Transport> split(std::span<const i32> colors) = 0;
  // Whether each rank is a process, whose calls base/call_log.h keeps.
  virtual bool is_process() const = 0;
};

}  // namespace redco
