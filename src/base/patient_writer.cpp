#include "base/patient_writer.h"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/timing.h"

namespace redco {

namespace {

// A descriptor that is ready takes this many bytes without blocking (PIPE_BUF).
constexpr std::size_t kAtOnce = 4096;

// The length of the next piece: at most kAtOnce bytes, and whole lines if the text has them.
std::size_t next_piece(std::string_view text) {
  if (text.size() <= kAtOnce) return text.size();
  const std::size_t line = text.rfind('\n', kAtOnce - 1);
  return line == std::string_view::npos ? kAtOnce : line + 1;
}

}  // namespace

bool PatientWriter::ready(double seconds_left) const {
  const double end = seconds() + seconds_left;
  for (;;) {
    pollfd p{fd_, POLLOUT, 0};
    const int n = ::poll(&p, 1, static_cast<int>(std::max(0.0, end - seconds()) * 1000));
    if (n > 0) return true;  // also after an error, which the write then reports
    if (n < 0 && errno != EINTR) return true;
    if (seconds() >= end) return false;
  }
}

void PatientWriter::put(std::string_view text) {
  while (!text.empty()) {
    if (!ready(patience_)) {
      dropped_ += text.size();
      return;
    }
    const ssize_t n = ::write(fd_, text.data(), next_piece(text));
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    // EIO: the terminal was closed. Others may pass, like a full disk.
    if (n < 0) lost_ = errno == EPIPE || errno == EBADF || errno == EIO;
    if (n <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void PatientWriter::write(std::string_view text) {
  if (lost_ || text.empty()) return;
  if (dropped_ > 0) {
    if (!ready(0)) {
      dropped_ += text.size();
      return;
    }
    // One write with the text: a pipe that has become ready may take only one.
    put(fmt::format("\nwarning: {} bytes of messages are missing here, because nobody read them\n{}",
                    dropped_.exchange(0), text));
    return;
  }
  put(text);
}

}  // namespace redco
