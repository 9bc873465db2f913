#include "base/hash.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <vector>

#include "base/error.h"

namespace redco {

namespace {
Hash128 from_xxh(XXH128_hash_t h) { return {h.high64, h.low64}; }
}  // namespace

std::string Hash128::hex() const { return fmt::format("{:016x}{:016x}", high, low); }

u64 hash64(std::string_view bytes, u64 seed) {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), seed);
}
Hash128 hash128(std::string_view bytes) { return from_xxh(XXH3_128bits(bytes.data(), bytes.size())); }
std::string hex64(u64 hash) { return fmt::format("{:016x}", hash); }

// XXH3 uses the same state for the 64-bit and the 128-bit hash; only the digest differs.
struct Hasher::State {
  XXH3_state_t* x = XXH3_createState();
  State() {
    if (!x) throw std::bad_alloc();
    XXH3_128bits_reset(x);
  }
  ~State() { XXH3_freeState(x); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {}
Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

void Hasher::update(const void* bytes, std::size_t n) { XXH3_128bits_update(state_->x, bytes, n); }
u64 Hasher::digest64() const { return XXH3_64bits_digest(state_->x); }
Hash128 Hasher::digest128() const { return from_xxh(XXH3_128bits_digest(state_->x)); }

Hash128 hash_file(const std::string& path, const std::function<void(i64 n)>& read) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int e = errno;
    if (e == ENOENT || e == ENOTDIR || e == EACCES)
      throw UsageError("cannot open '{}': {}", path, std::strerror(e));
    throw IoError("cannot open '{}': {}", path, std::strerror(e));
  }
  Hasher hasher;
  std::vector<char> buffer(1 << 20);
  u64 offset = 0;
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int e = errno;
      ::close(fd);
      if (e == EISDIR) throw UsageError("'{}' is a folder; expected a file", path);
      throw IoError("reading {} at byte {} failed: {}", path, offset, std::strerror(e));
    }
    if (n == 0) break;
    hasher.update(buffer.data(), static_cast<std::size_t>(n));
    offset += static_cast<u64>(n);
    if (read) read(n);
  }
  ::close(fd);
  return hasher.digest128();
}

}  // namespace redco
