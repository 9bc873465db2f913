// Ranks under MPI: the only file that includes <mpi.h>. All messages are nonblocking, and waits poll them, so
// that a waiting rank yields its core to others, and sleeps in a long wait.
#include <dlfcn.h>
#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <numeric>
#include <utility>

#include "base/activity.h"
#include "base/error.h"
#include "comm/host_transport.h"
#include "comm/in_flight.h"
#include "comm/mpi_library.h"
#include "comm/transport.h"

namespace redco {

namespace {

// Large transfers are split into pieces: counts are int, and the watchdog sees progress with each piece.
constexpr i64 kMessageBytes = i64{64} << 20;
constexpr int kHostBytes = 64;

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

// The tag of a message: the kind of its call, the numbers of call and piece, which of the piece's steps
// it belongs to, and a hash of the sizes. So ranks in different calls never take each other's data, and each
// can tell what the other is doing. 23 bits, which is what all transports of Open MPI have. The number of the
// piece has one more bit than Calls needs for the pieces that can be on their way.
class CallTag {
 public:
  CallTag(const Label& l, i64 bytes)
      : tag_(static_cast<int>(l.what) << 20 | (l.step & 3) << 18 | static_cast<int>(l.call & 31) << 13 |
             static_cast<int>(l.piece & 31) << 8 |
             static_cast<int>(
                 (static_cast<u64>(bytes) ^ static_cast<u64>(l.sizes) << 32) * 0x9e3779b97f4a7c15ull >> 56)) {
  }
  explicit CallTag(int tag) : tag_(tag) {}
  operator int() const { return tag_; }  // NOLINT: MPI takes it
  Collective kind() const { return static_cast<Collective>(tag_ >> 20); }
  // Whether this is a message of that piece; sends and receives are counted apart.
  bool is_of_piece(const Label& l) const {
    return (tag_ >> 8 & 31) == static_cast<int>(l.piece & 31) &&
           (kind() == Collective::send) == (l.what == Collective::send);
  }
  // Whether it may be another step of that call.
  bool is_other_step(const Label& l) const {
    return (tag_ >> 18 & 3) != (l.step & 3) && kind() == l.what &&
           (tag_ >> 13 & 31) == static_cast<int>(l.call & 31);
  }
  // The number of the call, from one that is at most 16 calls away.
  i64 call(i64 near) const {
    const i64 ahead = ((tag_ >> 13 & 31) - near) & 31;
    return near + (ahead > 16 ? ahead - 32 : ahead);
  }

 private:
  int tag_;
};

// "rank 3 (node2)" for each member of a communicator, by its rank in MPI_COMM_WORLD.
using Names = std::vector<std::string>;

class MpiTransport final : public Transport {
 public:
  // Owns `comm`. names[r] describes rank r of comm.
  MpiTransport(MPI_Comm comm, int rank, int size, Names names)
      : comm_(comm), rank_(rank), size_(size), names_(std::move(names)) {
    check(MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  }
  ~MpiTransport() override {
    if (!finalized()) MPI_Comm_free(&comm_);  // errors are ignored: there is no place to report them
  }
  MpiTransport(const MpiTransport&) = delete;

  // Receives first, so that arriving data has a buffer. Empty messages are not sent.
  void post(Exchange& x) override {
    x.left = 0;
    for (const Message& m : x.receives) {
      const CallTag tag(x.label, m.bytes);
      each_part(x, m, [&](void* data, int n, MPI_Datatype type, i64 bytes) {
        check(MPI_Irecv(data, n, type, m.peer, tag, comm_, add(x, m.peer, bytes, tag)), "MPI_Irecv");
      });
    }
    for (const Message& m : x.sends) {
      const CallTag tag(x.label, m.bytes);
      each_part(x, m, [&](void* data, int n, MPI_Datatype type, i64) {
        check(MPI_Isend(data, n, type, m.peer, tag, comm_, add(x, m.peer, 0, tag)), "MPI_Isend");
      });
    }
  }

  bool progress() override {
    const int n = static_cast<int>(requests_.size());
    if (n == 0) return false;
    statuses_.resize(requests_.size());
    done_.resize(requests_.size());
    int n_done = 0;
    const int code = MPI_Testsome(n, requests_.data(), &n_done, done_.data(), statuses_.data());
    if (code != MPI_SUCCESS) fail(code, n_done);
    if (n_done <= 0) return false;
    for (int k = 0; k < n_done; ++k) {
      const Pending& p = pending_[done_[k]];
      if (p.expected) check_size(p, statuses_[k]);
      --p.of->left;
    }
    remove([&](std::size_t i) { return requests_[i] == MPI_REQUEST_NULL; });
    return true;
  }

  void pause(Waiter& waiter, Collective) override { waiter.pause(); }

  // A rank whose data is missing has sent something else for the same piece.
  void look() override {
    for (const Pending& p : pending_) {
      if (!p.expected) continue;
      int found = 0;
      MPI_Status status;
      check(MPI_Iprobe(p.peer, MPI_ANY_TAG, comm_, &found, &status), "MPI_Iprobe");
      if (!found) continue;
      const Label& mine = p.of->label;
      const CallTag theirs(status.MPI_TAG);
      if (theirs == p.tag || !theirs.is_of_piece(mine) || theirs.is_other_step(mine)) continue;
      int bytes = 0;
      check(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
      throw_different_calls(mine, p.expected, names_[p.peer], theirs.kind(), theirs.call(mine.call), bytes);
    }
  }

  // MPI can't take back a message that is being sent. Its memory must stay; the program ends.
  void withdraw(Exchange& x) noexcept override {
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if (pending_[i].of != &x || requests_[i] == MPI_REQUEST_NULL) continue;
      if (pending_[i].expected) MPI_Cancel(&requests_[i]);
      MPI_Request_free(&requests_[i]);
    }
    remove([&](std::size_t i) { return pending_[i].of == &x; });
  }

  std::unique_ptr<Transport> split(std::span<const i32> colors) override {
    const activity::Wait waiting("split");
    const MpiYields yields;
    Names names;
    for (int r = 0; r < size_; r++)
      if (colors[r] == colors[rank_]) names.push_back(names_[r]);
    MPI_Comm comm = MPI_COMM_NULL;
    check(MPI_Comm_split(comm_, colors[rank_], rank_, &comm), "MPI_Comm_split");
    int rank = 0, size = 0;
    check(MPI_Comm_rank(comm, &rank), "MPI_Comm_rank");
    check(MPI_Comm_size(comm, &size), "MPI_Comm_size");
    return std::make_unique<MpiTransport>(comm, rank, size, std::move(names));
  }

  bool is_process() const override { return true; }

 private:
  struct Pending {
    Exchange* of;
    int peer;
    i64 expected;  // size of a receive in bytes; 0: a send
    int tag;
  };

  MPI_Request* add(Exchange& x, int peer, i64 expected, int tag) {
    pending_.push_back({&x, peer, expected, tag});
    ++x.left;
    return &requests_.emplace_back(MPI_REQUEST_NULL);
  }

  // Calls f(data, n, type, bytes) for each MPI message that carries the bytes of m: more than one if they are
  // many. The borders between them depend only on the number of bytes, so they are equal on both sides.
  template <class F>
  void each_part(const Exchange& x, const Message& m, const F& f) {
    const auto parts = x.parts_of(m);
    if (parts.size() == 1) {
      for (i64 at = 0; at < m.bytes; at += kMessageBytes) {
        const i64 n = std::min(kMessageBytes, m.bytes - at);
        f(parts[0].data + at, static_cast<int>(n), MPI_BYTE, n);
      }
      return;
    }
    std::size_t i = 0;
    i64 used = 0;  // of parts[i]
    for (i64 at = 0; at < m.bytes; at += kMessageBytes) {
      const i64 bytes = std::min(kMessageBytes, m.bytes - at);
      lengths_.clear();
      places_.clear();
      for (i64 n = bytes; n > 0;) {
        const i64 k = std::min(n, parts[i].bytes - used);
        MPI_Aint place = 0;
        check(MPI_Get_address(parts[i].data + used, &place), "MPI_Get_address");
        places_.push_back(place);
        lengths_.push_back(static_cast<int>(k));
        n -= k;
        used += k;
        if (used == parts[i].bytes) ++i, used = 0;
      }
      MPI_Datatype type = MPI_DATATYPE_NULL;
      check(MPI_Type_create_hindexed(static_cast<int>(places_.size()), lengths_.data(), places_.data(),
                                     MPI_BYTE, &type),
            "MPI_Type_create_hindexed");
      check(MPI_Type_commit(&type), "MPI_Type_commit");
      f(MPI_BOTTOM, 1, type, bytes);
      check(MPI_Type_free(&type), "MPI_Type_free");  // the message keeps what it needs
    }
  }

  template <class P>
  void remove(const P& unwanted) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < pending_.size(); ++i) {
      if (unwanted(i)) continue;
      pending_[kept] = pending_[i];
      requests_[kept++] = requests_[i];
    }
    pending_.resize(kept);
    requests_.resize(kept);
  }

  void check_size(const Pending& p, const MPI_Status& status) {
    int got = 0;
    check(MPI_Get_count(&status, MPI_BYTE, &got), "MPI_Get_count");
    REDCO_CHECK(got == p.expected, "{}: {} sent {} bytes, expected {}; the ranks do not run the same program",
                name_of(p.of->label.what), names_[p.peer], got, p.expected);
  }

  [[noreturn]] void fail(int code, int n_done) {
    const char* what = pending_.empty() ? "MPI_Testsome" : name_of(pending_[0].of->label.what);
    for (int k = 0; code == MPI_ERR_IN_STATUS && k < n_done; k++) {
      const Pending& p = pending_[done_[k]];
      check(statuses_[k].MPI_ERROR,
            fmt::format("{} with {}", name_of(p.of->label.what), names_[p.peer]).c_str());
    }
    check(code, what);
    throw Error(ExitCode::rank_failed, fmt::format("{} failed", what));
  }

  MPI_Comm comm_;
  const int rank_, size_;
  Names names_;
  // Messages that are not complete, of all exchanges.
  std::vector<MPI_Request> requests_;
  std::vector<Pending> pending_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> done_;
  std::vector<int> lengths_;
  std::vector<MPI_Aint> places_;
};

bool set(const char* name) {
  const char* v = std::getenv(name);
  return v && *v;
}
int number(const char* name) {
  const char* v = std::getenv(name);
  return v ? std::atoi(v) : 0;
}

// The host of each rank: the first of the ranks that MPI has started on the same host.
std::vector<int> hosts_by_mpi(MPI_Comm comm, int rank, int size) {
  MPI_Comm host = MPI_COMM_NULL;
  check(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host), "MPI_Comm_split_type");
  int first = 0;
  check(MPI_Allreduce(&rank, &first, 1, MPI_INT, MPI_MIN, host), "MPI_Allreduce");
  check(MPI_Comm_free(&host), "MPI_Comm_free");
  std::vector<int> all(static_cast<std::size_t>(size));
  check(MPI_Allgather(&first, 1, MPI_INT, all.data(), 1, MPI_INT, comm), "MPI_Allgather");
  return all;
}

}  // namespace

std::unique_ptr<Group> make_mpi_world(const std::function<int(int rank)>& host_of) {
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
  std::vector<int> all = hosts_by_mpi(comm, rank, size);
  if (host_of)
    for (int r = 0; r < size; ++r) all[r] = host_of(r);
  auto memory = share_memory(rank, all, HostLink::segment_bytes, [&](const void* mine, void* of_all, int n) {
    check(MPI_Allgather(mine, n, MPI_BYTE, of_all, n, MPI_BYTE, comm), "MPI_Allgather");
  });
  std::unique_ptr<Transport> transport = std::make_unique<MpiTransport>(comm, rank, size, names);
  if (memory) {
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    transport = make_host_transport(std::make_shared<HostLink>(std::move(memory)), rank, std::move(ranks),
                                    std::move(names), std::move(transport), 0);
  }
  return std::make_unique<Group>(rank, size, false, std::move(transport), std::make_shared<InFlight>(), all);
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
