// XXH3: fast hashes that detect damaged or different bytes. Not secure against attackers. They are equal on
// every machine, so checkpoint manifests store them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/types.h"

namespace redco {

struct Hash128 {
  u64 high = 0, low = 0;
  bool operator==(const Hash128&) const = default;
  std::string hex() const;  // 32 digits, high half first, as printed by xxhsum -H2
};

u64 hash64(std::string_view bytes, u64 seed = 0);
Hash128 hash128(std::string_view bytes);
std::string hex64(u64 hash);  // 16 digits

// The hash of bytes that arrive in pieces; equal to the hash of their concatenation.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(Hasher&&) noexcept;
  Hasher& operator=(Hasher&&) noexcept;

  void update(const void* bytes, std::size_t n);
  u64 digest64() const;  // of all bytes so far
  Hash128 digest128() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The hash of a file's stored bytes (not unpacked). read(n): n more bytes were read; may be null. Throws the
// same errors as InputFile.
Hash128 hash_file(const std::string& path, const std::function<void(i64 n)>& read = {});

}  // namespace redco
