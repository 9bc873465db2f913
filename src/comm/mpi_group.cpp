// Ranks under MPI: the only file that includes <mpi.h>. All transfers are nonblocking, and waits poll them,
// so that a waiting rank yields its core to others, and sleeps in a long wait.
#include <dlfcn.h>
#include <mpi.h>
#include <sched.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <chrono>
#include <climits>
#include <cstdlib>
#include <optional>
#include <thread>
#include <utility>

#include "base/activity.h"
#include "base/call_log.h"
#include "base/error.h"
#include "comm/group.h"
#include "comm/mpi_library.h"

namespace redco {

namespace {

// Large transfers are split into pieces: counts are int, and the watchdog sees progress with each piece.
constexpr i64 kMessageBytes = i64{64} << 20;
constexpr int kHostBytes = 64;
constexpr i64 kShortBytes = 4096;

using Clock = std::chrono::steady_clock;

// The pause between two polls of a wait. The first 50 us spin. Then sched_yield offers the core to other
// threads. As soon as others use it, this wait and all waits of the next second sleep between polls instead.
// Linux gives a sleeping thread the core soon after the message arrives; a thread that yields repeatedly
// loses its turn each time (Linux 6.18 and later), and one that spins uses up its time slice. A wait for
// short messages sleeps after 20 ms in any case, when another 100 us do not matter.
class Waiter {
 public:
  explicit Waiter(bool short_messages) : short_(short_messages) {}
  // Returns true about ten times a second in a long wait.
  bool pause() {
    const auto now = Clock::now();
    const auto waited = now - began_;
    if (waited < kSpin) return false;
    if (now < shared_until) {
      std::this_thread::sleep_for(kShortPause);
    } else if (short_ && waited > kAwake) {
      std::this_thread::sleep_for(kPause);
    } else {
      sched_yield();
      if (const auto after = Clock::now(); after - now > kTaken)
        shared_until = after + std::chrono::seconds(1);
    }
    if (waited < looked_ + kLook) return false;
    looked_ = waited;
    return true;
  }

 private:
  static constexpr std::chrono::microseconds kSpin{50}, kShortPause{20}, kPause{100}, kTaken{100};
  static constexpr std::chrono::milliseconds kAwake{20}, kLook{100};
  static inline Clock::time_point shared_until;
  bool short_;
  Clock::time_point began_ = Clock::now();
  Clock::duration looked_{};
};

void check(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0, kind = 0;
  MPI_Error_string(code, text, &length);
  MPI_Error_class(code, &kind);
  if (kind == MPI_ERR_TRUNCATE)
    throw BugError(
        fmt::format("{}: a rank sent more than this one expects; the ranks do not run the same program ({})",
                    what, text));
  throw Error(ExitCode::rank_failed, fmt::format("{} failed: {}", what, text));
}

bool initialized() {
  int yes = 0;
  return MPI_Initialized(&yes) == MPI_SUCCESS && yes;
}
bool finalized() {
  int yes = 0;
  return MPI_Finalized(&yes) == MPI_SUCCESS && yes;
}

// During its lifetime MPI's progress loop yields the core at each poll: for MPI's blocking calls. In redco's
// polls it must not, because Waiter decides there. Open MPI has no public switch for this; if the function is
// missing, the setting of MPI_Init remains.
class MpiYields {
 public:
  MpiYields() { set(true); }
  ~MpiYields() { set(false); }
  MpiYields(const MpiYields&) = delete;
  MpiYields& operator=(const MpiYields&) = delete;

 private:
  static void set(bool on) {
    using Switch = bool (*)(bool);
    static const auto f = reinterpret_cast<Switch>(dlsym(RTLD_DEFAULT, "opal_progress_set_yield_when_idle"));
    if (f) f(on);
  }
};

// The tag of a message: the kind of its collective, the number of that call in the group, and a hash of the
// message's size. So ranks in different calls never take each other's data, and each can tell what the other
// is doing. 23 bits, which is what all transports of Open MPI have.
class CallTag {
 public:
  CallTag(Collective what, u32 call, i64 bytes)
      : tag_(static_cast<int>(what) << 20 | static_cast<int>(call & 0xff) << 12 |
             static_cast<int>(static_cast<u64>(bytes) * 0x9e3779b97f4a7c15ull >> 52)) {}
  explicit CallTag(int tag) : tag_(tag) {}
  operator int() const { return tag_; }  // NOLINT: MPI takes it
  // The number of the call, from one that is less than 128 calls away.
  i64 call(i64 near) const { return near + static_cast<std::int8_t>((tag_ >> 12 & 0xff) - (near & 0xff)); }
  const char* what() const { return name_of(static_cast<Collective>(tag_ >> 20)); }

 private:
  int tag_;
};

// "rank 3 (node2)" for each member of a communicator, by its rank in MPI_COMM_WORLD.
using Names = std::vector<std::string>;

class MpiGroup final : public Group {
 public:
  // Owns `comm`. names[r] describes rank r of comm.
  MpiGroup(MPI_Comm comm, int rank, int size, Names names)
      : Group(rank, size), comm_(comm), names_(std::move(names)) {
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  ~MpiGroup() override {
    if (!finalized()) MPI_Comm_free(&comm_);  // errors are ignored: there is no place to report them
  }
  MpiGroup(const MpiGroup&) = delete;

  std::unique_ptr<Group> split(int color) override {
    REDCO_CHECK(color >= 0, "split with the negative color {}", color);
    const activity::Wait waiting("split");
    const MpiYields yields;
    std::vector<int> colors(static_cast<std::size_t>(size()), color);
    check(MPI_Allgather(&color, 1, MPI_INT, colors.data(), 1, MPI_INT, comm_), "MPI_Allgather");
    Names names;
    for (int r = 0; r < size(); r++)
      if (colors[r] == color) names.push_back(names_[r]);
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_split(comm_, color, rank(), &comm), "MPI_Comm_split");
    int new_rank = 0, new_size = 0;
    check(MPI_Comm_rank(comm, &new_rank), "MPI_Comm_rank");
    check(MPI_Comm_size(comm, &new_size), "MPI_Comm_size");
    return std::make_unique<MpiGroup>(comm, new_rank, new_size, std::move(names));
  }

 private:
  void do_all_to_all(Collective what, std::span<const Send> send, std::span<const Recv> recv) override {
    start(what);
    // Receives first, so that arriving data has a buffer. The order of partners differs between ranks, so
    // that they do not all send to rank 0 first.
    for (int k = 1; k < size(); k++)
      receive(recv[(rank() - k + size()) % size()], (rank() - k + size()) % size());
    for (int k = 1; k < size(); k++) post(send[(rank() + k) % size()], (rank() + k) % size());
    wait();
  }

  // Small buffers go directly from the root to all, large ones through MPI's tree.
  void do_broadcast(void* data, i64 bytes, int root) override {
    start(Collective::broadcast);
    auto* at = static_cast<std::byte*>(data);
    bytes_ = bytes;
    if (bytes <= kShortBytes) {
      if (root != rank()) receive({at, bytes}, root);
      for (int k = 1; root == rank() && k < size(); k++) post({at, bytes}, (rank() + k) % size());
    } else {
      for (i64 done = 0; done < bytes; done += kMessageBytes) {
        const int n = static_cast<int>(std::min(kMessageBytes, bytes - done));
        check(MPI_Ibcast(at + done, n, MPI_BYTE, root, comm_, add(root, 0)), "MPI_Ibcast");
      }
    }
    wait();
  }

  // Exchanges one byte between all pairs, so that a missing rank is known by name.
  void do_barrier() override {
    std::vector<std::byte> bytes(static_cast<std::size_t>(size()));
    const std::byte mine{1};
    start(Collective::barrier);
    for (int k = 1; k < size(); k++)
      receive({&bytes[(rank() - k + size()) % size()], 1}, (rank() - k + size()) % size());
    for (int k = 1; k < size(); k++) post({&mine, 1}, (rank() + k) % size());
    wait();
  }

  struct Pending {
    int peer;
    i64 expected;  // size of a receive in bytes; 0: a send
    int tag;
  };

  void start(Collective what) {
    what_ = what;
    ++call_;
    requests_.clear();
    pending_.clear();
    bytes_ = 0;
  }
  MPI_Request* add(int peer, i64 expected, int tag = 0) {
    pending_.push_back({peer, expected, tag});
    return &requests_.emplace_back(MPI_REQUEST_NULL);
  }
  void receive(Recv block, int from) {
    bytes_ += block.bytes;
    const CallTag tag(what_, call_, block.bytes);
    for (i64 done = 0; done < block.bytes; done += kMessageBytes) {
      const i64 n = std::min(kMessageBytes, block.bytes - done);
      check(MPI_Irecv(block.data + done, static_cast<int>(n), MPI_BYTE, from, tag, comm_, add(from, n, tag)),
            "MPI_Irecv");
    }
  }
  void post(Send block, int to) {
    bytes_ += block.bytes;
    const CallTag tag(what_, call_, block.bytes);
    for (i64 done = 0; done < block.bytes; done += kMessageBytes) {
      const i64 n = std::min(kMessageBytes, block.bytes - done);
      check(MPI_Isend(block.data + done, static_cast<int>(n), MPI_BYTE, to, tag, comm_, add(to, 0, tag)),
            "MPI_Isend");
    }
  }

  void wait() {
    const int n = static_cast<int>(requests_.size());
    if (n == 0) return;
    call_log::add(name_of(what_), call_, size(), bytes_);
    statuses_.resize(requests_.size());
    int done = 0;
    test(n, done);
    if (!done) {
      const activity::Wait waiting(name_of(what_));
      Waiter waiter(bytes_ <= kShortBytes);
      other_.reset();
      for (int before = 0; !done; test(n, done))
        if (waiter.pause()) {
          const int ended = n_ended(n);  // a piece of a large transfer has arrived
          if (ended > before) activity::tick();
          if (ended == before) find_other_call(n);
          before = ended;
        }
    }
    for (int i = 0; i < n; i++) {
      if (!pending_[i].expected) continue;
      int got = 0;
      check(MPI_Get_count(&statuses_[i], MPI_BYTE, &got), "MPI_Get_count");
      REDCO_CHECK(got == pending_[i].expected,
                  "{}: {} sent {} bytes, expected {}; the ranks do not run the same program", name_of(what_),
                  names_[pending_[i].peer], got, pending_[i].expected);
    }
  }

  // In a long wait: an error if a rank whose data is missing has sent data of another call. It must be there
  // in two looks, because data of this call may be on its way in between.
  void find_other_call(int n) {
    for (int i = 0; i < n; ++i) {
      const Pending& p = pending_[i];
      if (!p.expected || ended(i)) continue;
      int found = 0;
      MPI_Status status;
      check(MPI_Iprobe(p.peer, MPI_ANY_TAG, comm_, &found, &status), "MPI_Iprobe");
      if (!found || status.MPI_TAG == p.tag) continue;
      if (other_ != std::pair(p.peer, status.MPI_TAG)) {
        other_ = {p.peer, status.MPI_TAG};
        return;
      }
      int bytes = 0;
      check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      const CallTag theirs(status.MPI_TAG);
      cancel(n);
      throw BugError(fmt::format(
          "this rank is in call {} of its group, {}, and expects {} bytes from {}, which is in call {}, {}, and sent "
          "{} bytes; the ranks do not run the same program",
          call_, name_of(what_), p.expected, names_[p.peer], theirs.call(call_), theirs.what(), bytes));
    }
  }
  void cancel(int n) {
    for (int i = 0; i < n; ++i) {
      if (requests_[i] == MPI_REQUEST_NULL) continue;
      if (pending_[i].expected) MPI_Cancel(&requests_[i]);
      MPI_Request_free(&requests_[i]);
    }
  }

  int n_ended(int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) sum += ended(i);
    return sum;
  }
  bool ended(int i) const {
    int done = 0;
    return requests_[i] == MPI_REQUEST_NULL ||
           (MPI_Request_get_status(requests_[i], &done, MPI_STATUS_IGNORE) == MPI_SUCCESS && done);
  }

  void test(int n, int& done) {
    const int code = MPI_Testall(n, requests_.data(), &done, statuses_.data());
    if (code == MPI_SUCCESS) return;
    for (int i = 0; code == MPI_ERR_IN_STATUS && i < n; i++) {
      const int own = statuses_[i].MPI_ERROR;
      if (own == MPI_SUCCESS || own == MPI_ERR_PENDING) continue;
      check(own, fmt::format("{} with {}", name_of(what_), names_[pending_[i].peer]).c_str());
    }
    check(code, name_of(what_));
  }

  MPI_Comm comm_;
  Names names_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<Pending> pending_;
  i64 bytes_ = 0;  // bytes sent and received by the operation
  Collective what_ = Collective::barrier;
  u32 call_ = 0;                              // number of the operation in this group
  std::optional<std::pair<int, int>> other_;  // a rank and a tag of another call that it has sent
};

bool set(const char* name) {
  const char* v = std::getenv(name);
  return v && *v;
}
int number(const char* name) {
  const char* v = std::getenv(name);
  return v ? std::atoi(v) : 0;
}

}  // namespace

std::unique_ptr<Group> make_mpi_world() {
  REDCO_CHECK(!finalized(), "MPI is already finalized");
  const activity::Wait waiting("MPI_Init");
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
  if (!initialized()) {
    int level = 0;
    prctl(PR_SET_TIMERSLACK, 1000);  // ns: makes the short sleeps of waits accurate
    check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread");
    REDCO_CHECK(level >= MPI_THREAD_FUNNELED,
                "this MPI has thread level {}; expected at least MPI_THREAD_FUNNELED", level);
  }
  const MpiYields yields;
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  MPI_Comm comm = MPI_COMM_NULL;
  check(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup");
  int rank = 0, size = 0;
  check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
  check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
  std::array<char, kHostBytes> host{};
  if (gethostname(host.data(), host.size() - 1)) host[0] = '?';
  std::vector<char> hosts(static_cast<std::size_t>(size) * kHostBytes);
  check(MPI_Allgather(host.data(), kHostBytes, MPI_CHAR, hosts.data(), kHostBytes, MPI_CHAR, comm),
        "MPI_Allgather");
  Names names;
  for (int r = 0; r < size; r++) names.push_back(fmt::format("rank {} ({})", r, &hosts[r * kHostBytes]));
  return std::make_unique<MpiGroup>(comm, rank, size, std::move(names));
}

void mpi_finalize() {
  if (!initialized() || finalized()) return;
  const activity::Wait waiting("MPI_Finalize");
  const MpiYields yields;
  check(MPI_Finalize(), "MPI_Finalize");
}

void mpi_abort(int code) {
  if (initialized() && !finalized()) MPI_Abort(MPI_COMM_WORLD, code);
  std::_Exit(code);
}

bool launched_under_mpi() {
  if (set("OMPI_COMM_WORLD_SIZE")) return true;
  const bool step_of_one = set("SLURM_STEP_ID") && number("SLURM_STEP_NUM_TASKS") == 1;
  return set("PMIX_RANK") && !step_of_one;
}

std::string mpi_mismatch() {
  int size = launched_under_mpi() ? 2 : 1;  // before MPI_Init only the environment is known
  if (initialized() && !finalized()) check(MPI_Comm_size(MPI_COMM_WORLD, &size), "MPI_Comm_size");
  if (size > 1 || set("OMPI_COMM_WORLD_SIZE")) return {};
  // SLURM_STEP_NUM_TASKS is set by srun. A batch shell also has SLURM_NTASKS and SLURM_PROCID=0, but is one
  // process.
  const int tasks = set("SLURM_STEP_ID") ? number("SLURM_STEP_NUM_TASKS") : 0;
  if (tasks > 1)
    return fmt::format(
        "srun started {} processes (this is SLURM_PROCID={}), but MPI does not connect them: each would be "
        "rank 0 of 1 and run the whole job; use `srun --mpi=pmix ...` (`srun --mpi=list` shows what this "
        "cluster supports), or run the command once in the allocation, without srun",
        tasks, number("SLURM_PROCID"));
  const int pmi = number("PMI_SIZE");
  if (pmi > 1)
    return fmt::format(
        "another MPI's launcher started {} processes (PMI_SIZE; this is PMI_RANK={}), but redco is built "
        "with Open MPI: each would be rank 0 of 1; use Open MPI's mpirun, or run the command once and let it "
        "start the ranks",
        pmi, number("PMI_RANK"));
  return {};
}

std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  int length = 0;
  check(MPI_Get_library_version(text, &length), "MPI_Get_library_version");
  const std::string all = text;
  return all.substr(0, all.find_first_of(",\n"));
}

MpiLibrary mpi_library() {
  Dl_info file{};
  const bool found = dladdr(reinterpret_cast<void*>(&MPI_Get_library_version), &file) && file.dli_fname;
  return {found ? file.dli_fname : "", mpi_version()};
}

}  // namespace redco
