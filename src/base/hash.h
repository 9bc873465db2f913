// XXH3: fast hashes that tell damaged or different bytes apart. Not against attackers. The same on every
// machine, so they may be stored (checkpoint manifests).
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

struct Hash128 {
  u64 high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
  std::string hex() const;  // 32 digits, high half first, as xxhsum -H2 prints it
};

u64 hash64(std::string_view bytes, u64 seed = 0);
Hash128 hash128(std::string_view bytes);
std::string hex64(u64 hash);  // 16 digits

// The same over bytes that come in pieces: equal to hashing them at once.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void update(const void* bytes, std::size_t n);
  u64 digest64() const;  // of what came so far
  Hash128 digest128() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The stored bytes of a file (not unpacked). Errors as InputFile's.
Hash128 hash_file(const std::string& path);

}  // namespace redco
