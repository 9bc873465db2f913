#include "ckpt/safetensors.h"

#include <cstring>

#include "base/error.h"

namespace redco::ckpt {
namespace {

u64 read_u64(const unsigned char* p) {
  u64 v;
  std::memcpy(&v, p, 8);
  return v;
}

}  // namespace

SafetensorsFile SafetensorsFile::open(const std::string& path) {
  ReadFile file = ReadFile::open(path);
  unsigned char prefix[8];
  if (file.size() < 8)
    throw ContentsError("{}: the file has {} bytes, too few for a safetensors file", path, file.size());
  file.pread_exact(0, prefix, 8);
  u64 n = read_u64(prefix);
  if (n > static_cast<u64>(kMaxHeaderBytes) || static_cast<i64>(n) > file.size() - 8) {
    std::string first(reinterpret_cast<char*>(prefix), 8);
    bool lfs = first == "version ";  // "version https://git-lfs.github.com/spec/v1"
    throw ContentsError("{}: its header should have {} bytes, but {}{}", path, n,
                        n > static_cast<u64>(kMaxHeaderBytes)
                            ? fmt::format("at most {} are allowed", kMaxHeaderBytes)
                            : fmt::format("the file has {}", file.size()),
                        lfs ? "; this is a Git LFS pointer, run `git lfs pull`"
                            : "; it is not a safetensors file, or truncated");
  }
  std::string text(n, '\0');
  file.pread_exact(8, text.data(), static_cast<i64>(n));
  Header header = parse_header(text, 8 + static_cast<i64>(n), file.size(), path);
  return SafetensorsFile(std::move(file), std::move(header));
}

}  // namespace redco::ckpt
