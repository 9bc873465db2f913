#include "ckpt/chunked_file.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"

namespace redco::ckpt {

ChunkedFile::ChunkedFile(const std::string& path, i64 size, WriteQueue& queue, i64 chunk_bytes)
    : queue_(queue),
      file_(DurableFile::create(path, size)),
      size_(size),
      window_(queue.size().window_bytes),
      chunk_(chunk_bytes) {
  REDCO_CHECK(size >= 0 && chunk_ % window_ == 0 && window_ % DurableFile::kDirect == 0, "{} {}", window_,
              chunk_);
}

ChunkedFile::~ChunkedFile() {
  {
    const std::lock_guard lock(mutex_);
    if (!failed_) failed_ = std::make_exception_ptr(IoError("{}: dropped", file_.path()));
  }
  wait_quietly();
  for (const auto& [window, w] : open_) queue_.give(w.bytes);
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
      Window& w = opened(window);
      w.filled += part;
      REDCO_CHECK(w.filled <= size_of(window), "{}: parts written twice", file_.path());
      parallel::for_blocks(part, 1, [&](i64 b, i64 e) {
        std::memcpy(w.bytes + begin + b, p + b, static_cast<std::size_t>(e - b));
      });
      if (w.filled == size_of(window)) finish(open_.find(window));
    }
    offset += part;
    p += part;
    n -= part;
  }
}

ChunkedFile::Window& ChunkedFile::opened(i64 window) {
  if (const auto at = open_.find(window); at != open_.end()) return at->second;
  std::byte* bytes = queue_.take();
  if (!bytes) {  // all are incomplete windows of this file
    spill(open_.begin());
    bytes = queue_.take();
  }
  REDCO_CHECK(bytes, "{}: no window", file_.path());
  return open_.try_emplace(window, Window{.bytes = bytes}).first->second;
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

template <class F>
void ChunkedFile::guarded(const F& f) {
  {
    const std::lock_guard lock(mutex_);
    if (failed_) return;
  }
  try {
    if (queue_.cancelled()) throw IoError("{}: the save was cancelled", file_.path());
    f();
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failed_) failed_ = std::current_exception();
  }
}

void ChunkedFile::finish(std::map<i64, Window>::iterator at) {
  const i64 window = at->first;
  std::byte* const bytes = at->second.bytes;
  {
    const std::lock_guard lock(mutex_);
    if (failed_) std::rethrow_exception(failed_);
    ++queued_;
  }
  open_.erase(at);
  queue_.push(
      bytes, [this, window, bytes] { guarded([&] { hash(window, bytes); }); },
      [this, window, bytes] {
        guarded([&] { file_.pwrite_direct(window * window_, bytes, size_of(window)); });
        const std::lock_guard lock(mutex_);
        --queued_;
        done_.notify_all();
      });
}

// Writes an incomplete window, to have its memory for another one. Its other pieces go to the file.
void ChunkedFile::spill(std::map<i64, Window>::iterator at) {
  wait();
  const i64 window = at->first;
  again_.insert(window * window_ / chunk_);
  file_.pwrite(window * window_, at->second.bytes, size_of(window));
  spilled_[window] = size_of(window) - at->second.filled;
  queue_.give(at->second.bytes);
  open_.erase(at);
}

void ChunkedFile::wait_quietly() {
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return queued_ == 0; });
}

void ChunkedFile::wait() {
  wait_quietly();
  if (failed_) std::rethrow_exception(failed_);
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
