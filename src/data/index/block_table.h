// Tables of fixed-size entries inside a file that also grows with other data. Entries are written in blocks
// of 4096. Only the offsets of the blocks (8 bytes each) are kept in memory; they are written at the end. So
// any number of entries is written in one pass, and read at random in constant memory.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"

namespace redco {

// A file for appending; appended bytes are hashed. Errors as DurableFile.
class HashedFile {
 public:
  HashedFile(const std::string& path, i64 header_bytes)
      : file_(DurableFile::create(path, header_bytes)), size_(static_cast<u64>(header_bytes)) {}
  // Returns the offset of the bytes.
  u64 append(std::string_view bytes) {
    const u64 at = size_ + buffer_.size();
    buffer_ += bytes;
    if (buffer_.size() >= kBuffer) flush();
    return at;
  }
  u64 body_hash() {
    flush();
    return hash_.digest64();
  }
  void commit(const void* header, i64 bytes) {
    flush();
    file_.pwrite(0, header, bytes);
    file_.commit();
  }

 private:
  static constexpr std::size_t kBuffer = std::size_t{1} << 20;
  void flush() {
    hash_.update(buffer_.data(), buffer_.size());
    file_.append(buffer_);
    size_ += buffer_.size();
    buffer_.clear();
  }
  DurableFile file_;
  u64 size_;
  std::string buffer_;
  Hasher hash_;
};

inline constexpr u64 kTableBlock = 4096;  // entries

template <class T>
class TableWriter {
 public:
  static_assert(std::is_trivially_copyable_v<T> && std::has_unique_object_representations_v<T>);
  explicit TableWriter(HashedFile& file) : file_(file) {}
  void add(const T& entry) {
    pending_.push_back(entry);
    ++n_;
    if (pending_.size() == kTableBlock) flush();
  }
  u64 size() const { return n_; }
  // Writes the offsets of the blocks and returns their own offset.
  u64 finish() {
    if (!pending_.empty()) flush();
    return file_.append({reinterpret_cast<const char*>(places_.data()), places_.size() * sizeof(u64)});
  }

 private:
  void flush() {
    places_.push_back(
        file_.append({reinterpret_cast<const char*>(pending_.data()), pending_.size() * sizeof(T)}));
    pending_.clear();
  }
  HashedFile& file_;
  std::vector<T> pending_;
  std::vector<u64> places_;
  u64 n_ = 0;
};

// Const and thread-safe; refers to the file.
template <class T>
class BlockTableReader {
 public:
  // ContentsError if the file has no such table.
  BlockTableReader(const ReadFile& file, u64 n, u64 directory) : file_(&file), n_(n) {
    const u64 size = static_cast<u64>(file.size()), blocks = ceil_div(n, kTableBlock);
    if (directory > size || blocks > (size - directory) / sizeof(u64)) throw damaged();
    places_.resize(blocks);
    file.pread_exact(static_cast<i64>(directory), places_.data(), static_cast<i64>(blocks * sizeof(u64)));
    for (std::size_t b = 0; b < places_.size(); ++b) {
      const u64 entries = b + 1 < places_.size() ? kTableBlock : n - b * kTableBlock;
      if (places_[b] > size || entries * sizeof(T) > size - places_[b]) throw damaged();
    }
  }
  u64 size() const { return n_; }
  T at(u64 i) const {
    T entry;
    read(i, 1, &entry);
    return entry;
  }
  // Entries [begin, begin + n).
  void read(u64 begin, u64 n, T* to) const {
    REDCO_CHECK(begin <= n_ && n <= n_ - begin, "entries {}+{} of {}", begin, n, n_);
    while (n > 0) {
      const u64 inside = begin % kTableBlock, count = std::min(n, kTableBlock - inside);
      file_->pread_exact(static_cast<i64>(places_[begin / kTableBlock] + inside * sizeof(T)), to,
                         static_cast<i64>(count * sizeof(T)));
      begin += count;
      n -= count;
      to += count;
    }
  }

 private:
  ContentsError damaged() const {
    return ContentsError("{}: a table in the file is damaged. Remove the file; redco rebuilds it",
                         file_->path());
  }
  const ReadFile* file_;
  u64 n_;
  std::vector<u64> places_;
};

}  // namespace redco
