#include "ckpt/chunked_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace redco::ckpt {

ChunkedFile::ChunkedFile(const std::string& path, i64 size, i64 window_bytes, i64 chunk_bytes)
    : file_(DurableFile::create(path, size)), size_(size), window_(window_bytes), chunk_(chunk_bytes) {
  REDCO_CHECK(size >= 0 && chunk_ % window_ == 0 && window_ % DurableFile::kDirect == 0, "{} {}", window_,
              chunk_);
}

void ChunkedFile::write(i64 offset, const void* from, i64 n) {
  REDCO_CHECK(offset >= 0 && n >= 0 && n <= size_ - offset, "{} + {} of {}", offset, n, size_);
  const auto* p = static_cast<const std::byte*>(from);
  while (n > 0) {
    const i64 window = offset / window_, begin = offset - window * window_;
    const i64 part = std::min(n, size_of(window) - begin);
    if (const auto s = spilled_.find(window); s != spilled_.end()) {
      REDCO_CHECK(part <= s->second, "{}: parts written twice", file_.path());
      wait();
      file_.pwrite(offset, p, part);
      s->second -= part;
    } else {
      auto at = open_.find(window);
      if (at == open_.end()) {
        if (static_cast<i64>(open_.size()) == kWindows) spill(open_.begin());
        at = open_.try_emplace(window).first;
        if (free_.empty()) {
          at->second.bytes.reset(static_cast<std::byte*>(
              std::aligned_alloc(DurableFile::kDirect, static_cast<std::size_t>(window_))));
          if (!at->second.bytes) throw std::bad_alloc();
        } else {
          at->second.bytes = std::move(free_.back());
          free_.pop_back();
        }
      }
      Window& w = at->second;
      w.filled += part;
      REDCO_CHECK(w.filled <= size_of(window), "{}: parts written twice", file_.path());
      std::memcpy(w.bytes.get() + begin, p, static_cast<std::size_t>(part));
      if (w.filled == size_of(window)) finish(at);
    }
    offset += part;
    p += part;
    n -= part;
  }
}

void ChunkedFile::hash(i64 window, const std::byte* bytes) {
  const i64 per_chunk = chunk_ / window_, chunk = window / per_chunk;
  i64& next = next_.try_emplace(chunk, chunk * per_chunk).first->second;
  if (window != next) {
    again_.insert(chunk);
    return;
  }
  ++next;
  Hasher& hasher = hashers_[chunk];
  hasher.update(bytes, static_cast<std::size_t>(size_of(window)));
  if (next != (chunk + 1) * per_chunk && next * window_ < size_) return;
  hashes_[chunk] = hasher.digest128().hex();
  hashers_.erase(chunk);
}

void ChunkedFile::finish(std::map<i64, Window>::iterator at) {
  const i64 window = at->first;
  AlignedBytes bytes = std::move(at->second.bytes);
  open_.erase(at);
  wait();
  writing_ = worker_.run([this, window, b = std::move(bytes)]() mutable {
    hash(window, b.get());
    file_.pwrite_direct(window * window_, b.get(), size_of(window));
    return std::move(b);
  });
}

// Writes an incomplete window, to have its memory for another one. Its other pieces go to the file.
void ChunkedFile::spill(std::map<i64, Window>::iterator at) {
  wait();
  const i64 window = at->first;
  again_.insert(window * window_ / chunk_);
  file_.pwrite(window * window_, at->second.bytes.get(), size_of(window));
  spilled_[window] = size_of(window) - at->second.filled;
  free_.push_back(std::move(at->second.bytes));
  open_.erase(at);
}

void ChunkedFile::wait() {
  if (writing_.valid()) free_.push_back(writing_.get());
}

std::vector<std::string> ChunkedFile::commit() {
  wait();
  i64 lack = 0;
  for (const auto& [window, w] : open_) lack += size_of(window) - w.filled;
  for (const auto& [window, bytes] : spilled_) lack += bytes;
  REDCO_CHECK(lack == 0, "{}: {} bytes are missing", file_.path(), lack);
  file_.commit();
  if (size_ == 0) hashes_[0] = Hasher().digest128().hex();
  if (!again_.empty()) {
    const ReadFile file = ReadFile::open(file_.path());
    for (const i64 chunk : again_) hashes_[chunk] = chunk_hash(file, chunk, chunk_);
  }
  std::vector<std::string> out;
  for (auto& [chunk, hash] : hashes_) out.push_back(std::move(hash));
  REDCO_CHECK(static_cast<i64>(out.size()) == std::max<i64>(1, ceil_div(size_, chunk_)));
  return out;
}

}  // namespace redco::ckpt
