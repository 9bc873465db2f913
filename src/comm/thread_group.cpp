// Ranks as threads of one process. The ranks of a group share a Meeting. Each rank posts its buffers, waits
// for the others, copies what it needs, and waits again, so that no rank changes its buffers too early. All
// waits in all groups of a world check the state of the world, so that an error on any rank wakes all ranks.
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/error.h"
#include "comm/group.h"

namespace redco {

namespace {

// State of the ranks of run_threads(). All groups share one mutex and condition variable, because tests have
// few ranks.
struct World {
  explicit World(int size) : ended(static_cast<std::size_t>(size), false) {}
  std::mutex mutex;
  std::condition_variable changed;
  int failed = -1;          // a rank that threw
  std::vector<bool> ended;  // ranks that returned
};

class ThreadGroup;

struct Meeting {
  Meeting(std::shared_ptr<World> w, std::vector<int> m)
      : world(std::move(w)), members(std::move(m)), posted(members.size()), arrived(members.size(), false) {}
  std::shared_ptr<World> world;
  std::vector<int> members;  // world ranks
  std::vector<const ThreadGroup*> posted;
  // Guarded by world->mutex:
  std::vector<bool> arrived;
  int n_arrived = 0;
  i64 generation = 0;
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(std::shared_ptr<Meeting> meeting, int rank)
      : Group(rank, static_cast<int>(meeting->members.size())), meeting_(std::move(meeting)) {}

  std::unique_ptr<Group> split(int color) override {
    REDCO_CHECK(color >= 0, "split with the negative color {}", color);
    color_ = color;
    meet(Collective::barrier);
    const std::string wrong = differing(Collective::barrier);
    std::vector<int> members;
    int mine = 0, first = -1;
    for (int r = 0; wrong.empty() && r < size(); r++) {
      if (meeting_->posted[r]->color_ != color) continue;
      if (first < 0) first = r;
      if (r == rank()) mine = static_cast<int>(members.size());
      members.push_back(meeting_->members[r]);
    }
    if (first == rank()) fresh_ = std::make_shared<Meeting>(meeting_->world, members);
    leave();
    REDCO_CHECK(wrong.empty(), "{}", wrong);
    auto meeting = meeting_->posted[first]->fresh_;
    leave();
    color_ = kNoSplit;
    fresh_.reset();
    return std::make_unique<ThreadGroup>(std::move(meeting), mine);
  }

 private:
  static constexpr int kNoSplit = -1;

  void do_all_to_all(Collective what, std::span<const Send> send, std::span<const Recv> recv) override {
    outgoing_ = send;
    meet(what);
    std::string wrong = differing(what);
    for (int r = 0; wrong.empty() && r < size(); r++) {
      const Send& block = meeting_->posted[r]->outgoing_[rank()];
      if (block.bytes != recv[r].bytes)
        wrong = fmt::format("{}: rank {} sends {} bytes to rank {}, which expects {}", name_of(what), r,
                            block.bytes, rank(), recv[r].bytes);
      else if (block.bytes)
        std::memcpy(recv[r].data, block.data, static_cast<std::size_t>(block.bytes));
    }
    leave();
    REDCO_CHECK(wrong.empty(), "{}", wrong);
  }

  void do_broadcast(void* data, i64 bytes, int root) override {
    const Send block{static_cast<const std::byte*>(data), bytes};
    outgoing_ = {&block, 1};
    meet(Collective::broadcast);
    std::string wrong = differing(Collective::broadcast);
    if (wrong.empty() && root != rank()) {
      const Send& from = meeting_->posted[root]->outgoing_[0];
      if (from.bytes != bytes)
        wrong = fmt::format("broadcast: rank {} sends {} bytes, rank {} expects {}", root, from.bytes, rank(),
                            bytes);
      else
        std::memcpy(data, from.data, static_cast<std::size_t>(bytes));
    }
    leave();
    REDCO_CHECK(wrong.empty(), "{}", wrong);
  }

  void do_barrier() override {
    meet(Collective::barrier);
    const std::string wrong = differing(Collective::barrier);
    leave();
    REDCO_CHECK(wrong.empty(), "{}", wrong);
  }

  // The error if the ranks that met are in different collectives.
  std::string differing(Collective what) const {
    for (int r = 0; r < size(); r++)
      if ((meeting_->posted[r]->color_ == kNoSplit) != (color_ == kNoSplit))
        return fmt::format("one of the ranks {} and {} is in split, the other in barrier", rank(), r);
      else if (meeting_->posted[r]->what_ != what)
        return fmt::format("rank {} is in {} while rank {} is in {}", rank(), name_of(what), r,
                           name_of(meeting_->posted[r]->what_));
    return {};
  }

  // Posts this rank's buffers and waits for all ranks. Between meet and leave other ranks read this rank's
  // memory, so no exception may be thrown there.
  void meet(Collective what) {
    what_ = what;
    meeting_->posted[rank()] = this;
    std::unique_lock lock(meeting_->world->mutex);
    if (meeting_->world->failed >= 0) throw_failed(what);
    const i64 generation = meeting_->generation;
    if (!arrive()) wait(lock, generation, what);
  }

  // Waits until all ranks that met have copied what they need. They always arrive, so a failure elsewhere
  // must not interrupt this wait.
  void leave() {
    std::unique_lock lock(meeting_->world->mutex);
    const i64 generation = meeting_->generation;
    if (!arrive()) meeting_->world->changed.wait(lock, [&] { return meeting_->generation != generation; });
  }

  // Returns true for the last rank to arrive. REQUIRES: the world's mutex.
  bool arrive() {
    Meeting& m = *meeting_;
    m.arrived[rank()] = true;
    if (++m.n_arrived == size()) {
      std::fill(m.arrived.begin(), m.arrived.end(), false);
      m.n_arrived = 0;
      m.generation++;
      m.world->changed.notify_all();
      return true;
    }
    return false;
  }

  void wait(std::unique_lock<std::mutex>& lock, i64 generation, Collective what) {
    Meeting& m = *meeting_;
    World& w = *m.world;
    int gone = -1;
    const auto over = [&] {
      if (m.generation != generation || w.failed >= 0) return true;
      for (int r = 0; r < size(); r++)
        if (!m.arrived[r] && w.ended[m.members[r]]) gone = m.members[r];
      return gone >= 0;
    };
    w.changed.wait(lock, over);
    if (m.generation != generation) return;
    // Withdraw the arrival: from here on no rank may read this rank's memory.
    m.arrived[rank()] = false;
    m.n_arrived--;
    if (w.failed >= 0) throw_failed(what);
    throw Error(ExitCode::rank_failed, fmt::format("{}: rank {} has ended without it", name_of(what), gone));
  }

  [[noreturn]] void throw_failed(Collective what) const {
    throw Error(ExitCode::rank_failed,
                fmt::format("{}: rank {} failed", name_of(what), meeting_->world->failed));
  }

  std::shared_ptr<Meeting> meeting_;
  // What this rank posts; the others read it between two waits.
  Collective what_ = Collective::barrier;
  std::span<const Send> outgoing_;
  int color_ = kNoSplit;
  std::shared_ptr<Meeting> fresh_;
};

}  // namespace

void run_threads(int size, const std::function<void(Group&)>& body) {
  REDCO_CHECK(size >= 1, "run_threads on {} ranks", size);
  auto world = std::make_shared<World>(size);
  std::vector<int> members(static_cast<std::size_t>(size));
  for (int r = 0; r < size; r++) members[r] = r;
  auto meeting = std::make_shared<Meeting>(world, members);
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  // The error is a consequence of another rank's failure.
  std::vector<char> followed(static_cast<std::size_t>(size), 0);
  const auto run = [&](int r) {
    try {
      ThreadGroup group(meeting, r);
      body(group);
    } catch (const Error& e) {
      errors[r] = std::current_exception();
      followed[r] = e.code() == ExitCode::rank_failed;
    } catch (...) {
      errors[r] = std::current_exception();
    }
    std::lock_guard lock(world->mutex);
    if (errors[r] && world->failed < 0) world->failed = r;
    world->ended[r] = true;
    world->changed.notify_all();
  };
  std::vector<std::thread> threads;
  try {
    for (int r = 0; r < size; r++) threads.emplace_back(run, r);
  } catch (...) {  // no thread could be created: end the running ones
    {
      std::lock_guard lock(world->mutex);
      world->failed = static_cast<int>(threads.size());
      world->changed.notify_all();
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
