// Ranks as threads of one process. A message is a letter in the box of its pair of ranks: the receiver finds
// it by its label, checks it, copies it from the sender's memory and marks it as taken. Every rank posts its
// messages to all others, also the empty ones, so that ranks in different calls always notice.
#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "comm/in_flight.h"
#include "comm/transport.h"

namespace redco {

namespace {

// State of the ranks of run_threads(). All groups share one mutex, because tests have few ranks.
struct World {
  explicit World(int size) : ranks(static_cast<std::size_t>(size)) {}
  struct Rank {
    std::condition_variable changed;
    bool news = false;   // something has happened since its last pause
    bool ended = false;  // it returned
  };
  void tell(int rank) {
    ranks[rank].news = true;
    ranks[rank].changed.notify_one();
  }
  void tell_all() {
    for (int r = 0; r < static_cast<int>(ranks.size()); ++r) tell(r);
  }
  std::mutex mutex;
  std::vector<Rank> ranks;
  int failed = -1;  // a rank that threw
};

struct Letter {
  enum class State : std::uint8_t { posted, copied_now, taken, withdrawn };
  Label label;
  std::vector<Part> parts;
  i64 bytes;
  State state = State::posted;
};

bool one_way(const Label& l) { return l.call == 0; }

// What the ranks of a group share; guarded by the world's mutex.
struct Meeting {
  Meeting(std::shared_ptr<World> w, std::vector<int> m)
      : world(std::move(w)), members(std::move(m)), boxes(members.size() * members.size()) {}
  using Box = std::vector<std::shared_ptr<Letter>>;
  Box& box(int from, int to) { return boxes[static_cast<std::size_t>(from) * members.size() + to]; }
  std::shared_ptr<World> world;
  std::vector<int> members;  // world ranks
  std::vector<Box> boxes;
  // By number of the split and color; each of its members takes it once.
  struct Child {
    std::shared_ptr<Meeting> meeting;
    std::size_t taken = 0;
  };
  std::map<std::pair<u32, i32>, Child> children;
};

class ThreadTransport final : public Transport {
 public:
  ThreadTransport(std::shared_ptr<Meeting> meeting, int rank) : meeting_(std::move(meeting)), rank_(rank) {}

  void post(Exchange& x) override {
    const std::lock_guard lock(world().mutex);
    x.left = static_cast<int>(x.sends.size() + x.receives.size());
    for (const Message& m : x.sends) {
      const auto parts = x.parts_of(m);
      auto letter = std::make_shared<Letter>(
          Letter{x.label, std::vector<Part>(parts.begin(), parts.end()), m.bytes, Letter::State::posted});
      meeting_->box(rank_, m.peer).push_back(letter);
      sent_.push_back({std::move(letter), &x});
      world().tell(meeting_->members[m.peer]);
    }
    for (const Message& m : x.receives) expected_.push_back({&x, m, x.label});
  }

  bool progress() override {
    std::unique_lock lock(world().mutex);
    bool any = std::erase_if(sent_, [](const Sent& s) {
                 if (s.letter->state != Letter::State::taken) return false;
                 --s.of->left;
                 return true;
               }) > 0;
    // The letters that are there, in order; a letter with a wrong label is an error, also if it was
    // withdrawn.
    std::string wrong;
    std::vector<std::pair<Expected, std::shared_ptr<Letter>>> found;
    std::erase_if(expected_, [&](const Expected& e) {
      Meeting::Box& box = meeting_->box(e.message.peer, rank_);
      const auto at =
          std::find_if(box.begin(), box.end(), [&](const auto& l) { return matches(l->label, e.label); });
      if (at == box.end()) {
        for (const auto& l : box)
          if (wrong.empty() && contradicts(l->label, e.label)) wrong = difference(*l, e);
        return false;
      }
      if (wrong.empty()) wrong = difference(**at, e);
      if (!wrong.empty() || (*at)->state != Letter::State::posted) return false;
      (*at)->state = Letter::State::copied_now;
      found.emplace_back(e, *at);
      box.erase(at);
      return true;
    });
    if (!found.empty()) {
      lock.unlock();
      for (const auto& [e, letter] : found) copy(letter->parts, e.of->parts_of(e.message));
      lock.lock();
    }
    for (const auto& [e, letter] : found) {
      letter->state = Letter::State::taken;
      --e.of->left;
      world().tell(meeting_->members[e.message.peer]);
    }
    if (!wrong.empty()) throw BugError(wrong);
    return any || !found.empty();
  }

  void pause(Waiter&, Collective what) override {
    std::unique_lock lock(world().mutex);
    World::Rank& me = world().ranks[meeting_->members[rank_]];
    while (!me.news) {
      if (world().failed >= 0)
        throw Error(ExitCode::rank_failed, fmt::format("{}: rank {} failed", name_of(what), world().failed));
      for (const Expected& e : expected_)
        if (const int r = meeting_->members[e.message.peer]; world().ranks[r].ended)
          throw Error(ExitCode::rank_failed,
                      fmt::format("{}: rank {} has ended without it", name_of(what), r));
      for (const Sent& s : sent_)
        for (int r = 0; r < static_cast<int>(meeting_->members.size()); ++r)
          if (r != rank_ && world().ranks[meeting_->members[r]].ended &&
              is_in(meeting_->box(rank_, r), s.letter))
            throw Error(ExitCode::rank_failed,
                        fmt::format("{}: rank {} has ended without it", name_of(what), meeting_->members[r]));
      me.changed.wait(lock);
    }
    me.news = false;
  }

  void withdraw(Exchange& x) noexcept override {
    std::unique_lock lock(world().mutex);
    for (const Sent& s : sent_) {
      if (s.of != &x) continue;
      world().ranks[meeting_->members[rank_]].changed.wait(
          lock, [&] { return s.letter->state != Letter::State::copied_now; });
      if (s.letter->state == Letter::State::posted) s.letter->state = Letter::State::withdrawn;
    }
    std::erase_if(sent_, [&](const Sent& s) { return s.of == &x; });
    std::erase_if(expected_, [&](const Expected& e) { return e.of == &x; });
  }

  std::unique_ptr<Transport> split(std::span<const i32> colors) override {
    const i32 color = colors[rank_];
    std::vector<int> members;
    int mine = 0;
    for (int r = 0; r < static_cast<int>(colors.size()); ++r) {
      if (colors[r] != color) continue;
      if (r == rank_) mine = static_cast<int>(members.size());
      members.push_back(meeting_->members[r]);
    }
    const std::lock_guard lock(world().mutex);
    const auto key = std::pair(splits_++, color);
    Meeting::Child& child = meeting_->children[key];
    if (!child.meeting) child.meeting = std::make_shared<Meeting>(meeting_->world, members);
    auto transport = std::make_unique<ThreadTransport>(child.meeting, mine);
    if (++child.taken == members.size()) meeting_->children.erase(key);
    return transport;
  }

  bool is_process() const override { return false; }

 private:
  struct Sent {
    std::shared_ptr<Letter> letter;
    Exchange* of;
  };
  struct Expected {
    Exchange* of;
    Message message;
    Label label;
  };

  World& world() const { return *meeting_->world; }

  static bool is_in(const Meeting::Box& box, const std::shared_ptr<Letter>& letter) {
    return std::find(box.begin(), box.end(), letter) != box.end();
  }

  static bool matches(const Label& a, const Label& b) {
    return one_way(a) == one_way(b) && a.piece == b.piece && a.step == b.step;
  }
  // A message of the same piece of another call.
  static bool contradicts(const Label& a, const Label& b) {
    return one_way(a) == one_way(b) && a.piece == b.piece &&
           (a.what != b.what || a.call != b.call || a.sizes != b.sizes);
  }

  // "" if the letter is the expected one.
  std::string difference(const Letter& l, const Expected& e) const {
    const int from = e.message.peer;
    if (l.label.what != e.label.what)
      return fmt::format("rank {} is in {} while rank {} is in {}", rank_, name_of(e.label.what), from,
                         name_of(l.label.what));
    if (l.label.step == e.label.step && l.bytes != e.message.bytes)
      return fmt::format("{}: rank {} sends {} bytes to rank {}, which expects {}", name_of(e.label.what),
                         from, l.bytes, rank_, e.message.bytes);
    if (l.label.sizes != e.label.sizes || l.label.call != e.label.call)
      return fmt::format("{}: ranks {} and {} call it with other sizes", name_of(e.label.what), from, rank_);
    return {};
  }

  static void copy(std::span<const Part> from, std::span<const Part> to) {
    std::size_t i = 0, j = 0;
    for (i64 a = 0, b = 0; i < from.size();) {
      const i64 n = std::min(from[i].bytes - a, to[j].bytes - b);
      std::memcpy(to[j].data + b, from[i].data + a, static_cast<std::size_t>(n));
      a += n;
      b += n;
      if (a == from[i].bytes) ++i, a = 0;
      if (b == to[j].bytes) ++j, b = 0;
    }
  }

  std::shared_ptr<Meeting> meeting_;
  const int rank_;
  u32 splits_ = 0;
  std::vector<Sent> sent_;
  std::vector<Expected> expected_;  // in the order in which they were posted
};

}  // namespace

void run_threads(int size, const std::function<void(Group&)>& body,
                 const std::function<int(int rank)>& host_of) {
  REDCO_CHECK(size >= 1, "run_threads on {} ranks", size);
  auto world = std::make_shared<World>(size);
  std::vector<int> members(static_cast<std::size_t>(size));
  std::vector<int> hosts(static_cast<std::size_t>(size), 0);
  for (int r = 0; r < size; r++) {
    members[r] = r;
    if (host_of) hosts[r] = host_of(r);
  }
  auto meeting = std::make_shared<Meeting>(world, members);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  // The error is a consequence of another rank's failure.
  std::vector<char> followed(static_cast<std::size_t>(size), 0);
  const auto run = [&](int r) {
    try {
      Group group(r, size, false, size > 1 ? std::make_unique<ThreadTransport>(meeting, r) : nullptr,
                  std::make_shared<InFlight>(), hosts);
      body(group);
    } catch (const Error& e) {
      errors[r] = std::current_exception();
      followed[r] = e.code() == ExitCode::rank_failed;
    } catch (...) {
      errors[r] = std::current_exception();
    }
    const std::lock_guard lock(world->mutex);
    if (errors[r] && world->failed < 0) world->failed = r;
    world->ranks[r].ended = true;
    world->tell_all();
  };
  std::vector<std::thread> threads;
  try {
    for (int r = 0; r < size; r++) threads.emplace_back(run, r);
  } catch (...) {  // no thread could be created: end the running ones
    {
      const std::lock_guard lock(world->mutex);
      world->failed = static_cast<int>(threads.size());
      world->tell_all();
    }
    for (auto& t : threads) t.join();
    throw;
  }
  for (auto& t : threads) t.join();
  for (int r = 0; r < size; r++)
    if (errors[r] && !followed[r]) std::rethrow_exception(errors[r]);
  if (world->failed >= 0) std::rethrow_exception(errors[world->failed]);
}

}  // namespace redco
