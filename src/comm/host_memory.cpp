#include "comm/host_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace redco {

namespace {

constexpr char kName[] = "redco";
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::size_t kReasonBytes = 160;
using Reason = std::array<char, kReasonBytes>;  // "": none

struct Proof {
  u64 random[2];
  bool operator==(const Proof&) const = default;
};
static_assert(sizeof(Proof) <= kProofBytes);

// What the others need to map a segment.
struct Offer {
  i64 pid;
  int fd;
  Proof proof;
  Reason why_not;
};

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void reset(int fd) {
    if (fd_ >= 0) close(fd_);
    fd_ = fd;
  }

 private:
  int fd_;
};

std::string problem(const char* what) { return fmt::format("{}: {}", what, std::strerror(errno)); }

// Returns why it cannot be mapped, or "".
std::string map(int fd, i64 bytes, MappedSegment& segment) {
  void* const p = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) return problem("mmap");
  segment = MappedSegment(static_cast<std::byte*>(p), bytes);
  return {};
}

std::string make_segment(i64 bytes, const Proof& proof, Descriptor& file, MappedSegment& segment) {
  // ftruncate beyond this limit would end the process (SIGXFSZ).
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < static_cast<rlim_t>(bytes))
    return fmt::format("the limit of file sizes is {} bytes (ulimit -f), and {} are needed", limit.rlim_cur,
                       bytes);
  file.reset(memfd_create(kName, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file.get() < 0) return problem("memfd_create");
  if (ftruncate(file.get(), bytes) != 0) return problem("ftruncate");
  if (fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) return problem("F_ADD_SEALS");
  if (std::string why = map(file.get(), bytes, segment); !why.empty()) return why;
  std::memcpy(segment.data(), &proof, sizeof proof);
  return {};
}

// Opens nothing but a memfd with our name, because the number may be that of another process.
std::string map_segment(const Offer& offer, i64 bytes, MappedSegment& segment) {
  const std::string path = fmt::format("/proc/{}/fd/{}", offer.pid, offer.fd);
  std::array<char, 64> link{};
  if (readlink(path.c_str(), link.data(), link.size() - 1) < 0) return problem(path.c_str());
  const std::string another = path + " is of another process: the ranks have separate PID namespaces";
  if (std::string(link.data()) != fmt::format("/memfd:{} (deleted)", kName)) return another;
  const Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (file.get() < 0) return problem(path.c_str());
  struct stat s {};
  if (fstat(file.get(), &s) != 0 || s.st_size != bytes || (fcntl(file.get(), F_GET_SEALS) & kSeals) != kSeals)
    return another;
  MappedSegment mapped;
  if (std::string why = map(file.get(), bytes, mapped); !why.empty()) return why;
  if (std::memcmp(mapped.data(), &offer.proof, sizeof offer.proof) != 0) return another;
  segment = std::move(mapped);
  return {};
}

void set(Reason& r, const std::string& text) {
  r.fill(0);
  text.copy(r.data(), r.size() - 1);
}

void log_reasons(std::span<const int> host_of, const std::vector<Reason>& reasons) {
  std::vector<int> told;
  for (std::size_t r = 0; r < reasons.size(); ++r) {
    if (!reasons[r][0] || std::find(told.begin(), told.end(), host_of[r]) != told.end()) continue;
    told.push_back(host_of[r]);
    info("the ranks on the host of rank {} exchange messages through MPI, not through shared memory: {}",
         host_of[r], reasons[r].data());
  }
}

}  // namespace

MappedSegment::~MappedSegment() {
  if (data_) munmap(data_, static_cast<std::size_t>(bytes_));
}

std::unique_ptr<HostMemory> share_memory(int rank, std::span<const int> host_of,
                                         const std::function<i64(int n)>& bytes_for,
                                         const AllGather& all_gather) {
  auto memory = std::make_unique<HostMemory>();
  for (int r = 0; r < std::ssize(host_of); ++r) {
    if (host_of[r] != host_of[rank]) continue;
    if (r == rank) memory->rank = static_cast<int>(memory->ranks.size());
    memory->ranks.push_back(r);
  }
  const int n = static_cast<int>(memory->ranks.size());
  const i64 bytes = bytes_for(n);
  memory->segments.resize(static_cast<std::size_t>(n));

  Offer mine{};
  Descriptor file(-1);
  if (n > 1) {
    std::string why;
    if (getrandom(&mine.proof, sizeof mine.proof, 0) != sizeof mine.proof) why = problem("getrandom");
    if (why.empty()) why = make_segment(bytes, mine.proof, file, memory->segments[memory->rank]);
    set(mine.why_not, why.empty() ? why : fmt::format("rank {}: {}", rank, why));
    mine.pid = getpid();
    mine.fd = file.get();
  }
  std::vector<Offer> offers(host_of.size());
  all_gather(&mine, offers.data(), sizeof(Offer));

  Reason reason{};
  for (int i = 0; i < n && n > 1 && !reason[0]; ++i) {
    const Offer& offer = offers[memory->ranks[i]];
    if (offer.why_not[0]) {
      reason = offer.why_not;
    } else if (i != memory->rank) {
      const std::string why = map_segment(offer, bytes, memory->segments[i]);
      if (!why.empty()) set(reason, fmt::format("rank {}: {}", rank, why));
    }
  }
  std::vector<Reason> reasons(host_of.size());
  all_gather(&reason, reasons.data(), sizeof(Reason));  // after it all have mapped this rank's segment
  if (rank == 0) log_reasons(host_of, reasons);
  const bool all_have =
      std::all_of(memory->ranks.begin(), memory->ranks.end(), [&](int r) { return reasons[r][0] == 0; });
  return n > 1 && all_have ? std::move(memory) : nullptr;
}

}  // namespace redco
