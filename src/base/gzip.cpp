#include "base/gzip.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/text_encoding.h"
#include "base/words.h"

namespace redco {

struct InputFile::State {
  std::string path;
  int fd = -1;
  std::array<unsigned char, 1 << 16> buffer;
  std::size_t begin = 0, end = 0;  // unread part of buffer
  u64 file_offset = 0;             // of buffer[end]
  bool at_end = false;             // of the file
  bool gzip = false;
  bool inside = false;  // inside a gzip member, where the file must not end
  z_stream z{};
  u64 out = 0;
  std::string ahead;  // unpacked bytes that open_text() looked at

  ~State() {
    if (gzip) inflateEnd(&z);
    if (fd >= 0) ::close(fd);
  }

  u64 offset() const { return file_offset - (end - begin); }

  // Reads more bytes after the unread ones. REQUIRES: room in the buffer.
  void fill() {
    if (begin == end) begin = end = 0;
    while (!at_end) {
      const ssize_t n = ::read(fd, buffer.data() + end, buffer.size() - end);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) throw IoError("reading {} at byte {} failed: {}", path, file_offset, std::strerror(errno));
      at_end = n == 0;
      end += static_cast<std::size_t>(n);
      file_offset += static_cast<u64>(n);
      return;
    }
  }

  [[noreturn]] void damaged(const char* what) const {
    throw ContentsError("{}: damaged gzip file at byte {} ({} unpacked): {}", path, offset(),
                        human_bytes(out), what);
  }

  std::size_t read_plain(char* to, std::size_t n) {
    if (begin == end) fill();
    n = std::min(n, end - begin);
    std::memcpy(to, buffer.data() + begin, n);
    begin += n;
    return n;
  }

  // Between two members: returns true if another member follows. Like gzip, it ignores zeros that pad the end
  // of the file.
  bool next_member() {
    bool padded = false;
    for (;;) {
      while (begin < end && buffer[begin] == 0) ++begin, padded = true;
      if (begin < end) break;
      fill();
      if (at_end && begin == end) return false;
    }
    if (padded || buffer[begin] != 0x1F) damaged("bytes that are not gzip data follow the end");
    if (inflateReset(&z) != Z_OK) throw BugError("inflateReset failed");
    return inside = true;
  }

  std::size_t read_gzip(char* to, std::size_t n) {
    z.next_out = reinterpret_cast<Bytef*>(to);
    z.avail_out = static_cast<uInt>(std::min<std::size_t>(n, 1u << 30));
    const uInt room = z.avail_out;
    while (z.avail_out == room) {
      if (!inside && !next_member()) return 0;
      if (begin == end) fill();
      if (begin == end) damaged("it ends too early; check that it was copied or written completely");
      z.next_in = buffer.data() + begin;
      z.avail_in = static_cast<uInt>(end - begin);
      const int rc = inflate(&z, Z_NO_FLUSH);
      begin = end - z.avail_in;
      if (rc == Z_STREAM_END) {
        inside = false;
      } else if (rc == Z_MEM_ERROR) {
        throw IoError("out of memory while unpacking {}", path);
      } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
        damaged(z.msg ? z.msg : "not gzip data");
      }
    }
    return room - z.avail_out;
  }
};

InputFile::InputFile(std::unique_ptr<State> s) : state_(std::move(s)) {}
InputFile::InputFile(InputFile&&) noexcept = default;
InputFile& InputFile::operator=(InputFile&&) noexcept = default;
InputFile::~InputFile() = default;

InputFile InputFile::open(const std::string& path) {
  auto s = std::make_unique<State>();
  s->path = path;
  s->fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (s->fd < 0) {
    const int e = errno;
    if (e == ENOENT || e == ENOTDIR || e == EACCES || e == ENAMETOOLONG || e == ELOOP) {
      throw UsageError("cannot open '{}': {}", path, std::strerror(e));
    }
    throw IoError("cannot open '{}': {}", path, std::strerror(e));
  }
  struct stat info {};
  if (::fstat(s->fd, &info) == 0 && S_ISDIR(info.st_mode)) {
    throw UsageError("'{}' is a folder; expected a file", path);
  }
  while (s->end < 2 && !s->at_end) s->fill();
  s->gzip = s->end >= 2 && s->buffer[0] == 0x1F && s->buffer[1] == 0x8B;
  if (!s->gzip && path.ends_with(".gz")) {
    s->begin = 0;
    throw ContentsError("{}: named .gz, but {}", path,
                        s->end == 0 ? "it is empty; check that it was copied or written completely"
                                    : "its first bytes are not gzip's");
  }
  if (s->gzip) {
    s->inside = true;
    // 15: the largest window; 16: expect a gzip header and checksum.
    if (inflateInit2(&s->z, 15 + 16) != Z_OK) {
      s->gzip = false;
      throw IoError("out of memory while opening {}", path);
    }
  }
  return InputFile(std::move(s));
}

const std::string& InputFile::path() const { return state_->path; }
bool InputFile::is_gzip() const { return state_->gzip; }
u64 InputFile::position() const { return state_->out; }
u64 InputFile::stored_position() const { return state_->offset(); }

InputFile InputFile::open_text(const std::string& path) {
  InputFile file = open(path);
  std::string start;
  char chunk[256];
  // More than one byte, and more than a part of the mark; a pipe may not have more yet.
  while (start.size() < 2 || (start.size() < kByteOrderMark.size() && kByteOrderMark.starts_with(start))) {
    const std::size_t n = file.read(chunk, sizeof chunk);
    if (n == 0) break;
    start.append(chunk, n);
  }
  if (const auto encoding = wide_encoding(start); !encoding.empty())
    throw ContentsError("{}", wide_encoding_error(path, encoding));
  if (start.starts_with(kByteOrderMark)) start.erase(0, kByteOrderMark.size());
  file.state_->out -= start.size();
  file.state_->ahead = std::move(start);
  return file;
}

std::size_t InputFile::read(char* to, std::size_t n) {
  if (n == 0) return 0;
  if (std::string& ahead = state_->ahead; !ahead.empty()) {
    n = ahead.copy(to, n);
    ahead.erase(0, n);
    state_->out += n;
    return n;
  }
  const std::size_t got = state_->gzip ? state_->read_gzip(to, n) : state_->read_plain(to, n);
  state_->out += got;
  return got;
}

LineReader::LineReader(const std::string& path, std::size_t max_line)
    : file_(InputFile::open_text(path)), max_line_(max_line), buffer_(1 << 16, '\0') {}

bool LineReader::next(std::string& line) {
  line.clear();
  bool any = false, ended = false;
  for (;;) {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = file_.read(buffer_.data(), buffer_.size());
      if (end_ == 0) break;
    }
    any = true;
    const char* from = buffer_.data() + begin_;
    const auto* newline = static_cast<const char*>(std::memchr(from, '\n', end_ - begin_));
    const std::size_t n = newline ? static_cast<std::size_t>(newline - from) : end_ - begin_;
    if (line.size() + n > max_line_) {
      throw ContentsError("{}:{}: the line is longer than {}", file_.path(), number_ + 1,
                          human_bytes(max_line_));
    }
    line.append(from, n);
    begin_ += n + (newline ? 1 : 0);
    if (newline) {
      ended = true;
      break;
    }
  }
  if (!any) return false;
  if (!line.empty() && line.back() == '\r') {
    line.pop_back();
    if (number_ == 0 && ended) note_crlf(file_.path());
  }
  ++number_;
  return true;
}

std::string LineReader::where() const { return fmt::format("{}:{}", file_.path(), number_); }

std::string read_unpacked(const std::string& path, u64 max_bytes) {
  InputFile file = InputFile::open(path);
  std::string out;
  char chunk[1 << 15];
  while (const std::size_t n = file.read(chunk, sizeof chunk)) {
    if (out.size() + n > max_bytes) {
      throw ContentsError("{}: more than {}{}", path, human_bytes(max_bytes),
                          file.is_gzip() ? ", unpacked" : "");
    }
    out.append(chunk, n);
  }
  return out;
}

}  // namespace redco
