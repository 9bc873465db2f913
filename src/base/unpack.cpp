#include "base/unpack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/words.h"

namespace redco {

StoredFile::StoredFile(const std::string& path) : path_(path) {
  fd_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd_ < 0) {
    const int e = errno;
    if (e == ENOENT || e == ENOTDIR || e == EACCES || e == ENAMETOOLONG || e == ELOOP) {
      throw UsageError("cannot open '{}': {}", path, std::strerror(e));
    }
    throw IoError("cannot open '{}': {}", path, std::strerror(e));
  }
  struct stat info {};
  if (::fstat(fd_, &info) == 0 && S_ISDIR(info.st_mode)) {
    ::close(fd_);
    throw UsageError("'{}' is a folder; expected a file", path);
  }
}

StoredFile::~StoredFile() { ::close(fd_); }

void StoredFile::need(std::size_t n) {
  if (end_ - begin_ < n && begin_ > 0) {
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  while (end_ - begin_ < n && !at_end_) {
    const ssize_t got = ::read(fd_, buffer_.data() + end_, buffer_.size() - end_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw IoError("reading {} at byte {} failed: {}", path_, file_offset_, std::strerror(errno));
    at_end_ = got == 0;
    end_ += static_cast<std::size_t>(got);
    file_offset_ += static_cast<u64>(got);
  }
}

namespace {

constexpr const char* kTooShort = "it ends too early; check that it was copied or written completely";

[[noreturn]] void damaged(const StoredFile& file, const char* format, u64 unpacked, const char* what) {
  throw ContentsError("{}: damaged {} file at byte {} ({} unpacked): {}", file.path(), format, file.offset(),
                      human_bytes(unpacked), what);
}

class GzipUnpacker : public Unpacker {
 public:
  explicit GzipUnpacker(StoredFile& file) : file_(file) {
    // 15: the largest window; 16: expect a gzip header and checksum.
    if (inflateInit2(&z_, 15 + 16) != Z_OK) throw IoError("out of memory while opening {}", file.path());
  }
  ~GzipUnpacker() override { inflateEnd(&z_); }

  std::size_t read(char* to, std::size_t n, u64 unpacked) override {
    z_.next_out = reinterpret_cast<Bytef*>(to);
    z_.avail_out = static_cast<uInt>(std::min<std::size_t>(n, 1u << 30));
    const uInt room = z_.avail_out;
    while (z_.avail_out == room) {
      if (!inside_ && !next_member(unpacked)) return 0;
      file_.need(1);
      const std::string_view in = file_.unread();
      if (in.empty()) damaged(file_, "gzip", unpacked, kTooShort);
      z_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
      z_.avail_in = static_cast<uInt>(in.size());
      const int rc = inflate(&z_, Z_NO_FLUSH);
      file_.skip(in.size() - z_.avail_in);
      if (rc == Z_STREAM_END) {
        inside_ = false;
      } else if (rc == Z_MEM_ERROR) {
        throw IoError("out of memory while unpacking {}", file_.path());
      } else if (rc != Z_OK && rc != Z_BUF_ERROR) {
        damaged(file_, "gzip", unpacked, z_.msg ? z_.msg : "not gzip data");
      }
    }
    return room - z_.avail_out;
  }

 private:
  // Between two members: returns true if another member follows. Like gzip, it ignores zeros that pad the end
  // of the file.
  bool next_member(u64 unpacked) {
    bool padded = false;
    for (;;) {
      file_.need(1);
      const std::string_view in = file_.unread();
      if (in.empty()) return false;
      const std::size_t zeros = std::min(in.find_first_not_of('\0'), in.size());
      file_.skip(zeros);
      padded = padded || zeros > 0;
      if (zeros < in.size()) break;
    }
    if (padded || file_.unread()[0] != '\x1F')
      damaged(file_, "gzip", unpacked, "bytes that are not gzip data follow the end");
    if (inflateReset(&z_) != Z_OK) throw BugError("inflateReset failed");
    return inside_ = true;
  }

  StoredFile& file_;
  z_stream z_{};
  bool inside_ = true;  // inside a member, where the file must not end
};

// Whether `bytes` begin with the magic bytes of a zstd frame or of a skippable frame. With less than four
// bytes: whether they can be the beginning of these.
bool begins_zstd(std::string_view bytes) {
  constexpr std::string_view kFrame = "\x28\xB5\x2F\xFD", kSkippable = "\x2A\x4D\x18";
  if (bytes.empty()) return false;
  if (kFrame.starts_with(bytes.substr(0, 4))) return true;
  return (static_cast<unsigned char>(bytes[0]) & 0xF0) == 0x50 && kSkippable.starts_with(bytes.substr(1, 3));
}

class ZstdUnpacker : public Unpacker {
 public:
  // 128 MiB: the decoder's default, and the largest window of `zstd` without --long=28 or more. It bounds the
  // memory for files that ask for more.
  static constexpr int kWindowLog = 27;

  explicit ZstdUnpacker(StoredFile& file) : file_(file), z_(ZSTD_createDCtx()) {
    if (!z_ || ZSTD_isError(ZSTD_DCtx_setParameter(z_.get(), ZSTD_d_windowLogMax, kWindowLog)))
      throw IoError("out of memory while opening {}", file.path());
  }

  std::size_t read(char* to, std::size_t n, u64 unpacked) override {
    ZSTD_outBuffer out{to, n, 0};
    while (out.pos == 0) {
      if (!inside_ && !next_frame(unpacked)) return 0;
      // The decoder may hold unpacked bytes for which there was no room.
      if (!full_) file_.need(1);
      const std::string_view unread = file_.unread();
      if (unread.empty() && !full_) damaged(file_, "zstd", unpacked, kTooShort);
      ZSTD_inBuffer in{unread.data(), unread.size(), 0};
      const std::size_t rc = ZSTD_decompressStream(z_.get(), &out, &in);
      file_.skip(in.pos);
      if (ZSTD_isError(rc)) failed(rc, unpacked);
      full_ = out.pos == out.size;
      inside_ = rc != 0;
    }
    return out.pos;
  }

 private:
  // Between two frames: returns true if another frame follows.
  bool next_frame(u64 unpacked) {
    file_.need(4);
    const std::string_view in = file_.unread();
    if (in.empty()) return false;
    if (!begins_zstd(in)) damaged(file_, "zstd", unpacked, "bytes that are not zstd data follow the end");
    full_ = false;
    return inside_ = true;
  }

  [[noreturn]] void failed(std::size_t rc, u64 unpacked) const {
    switch (ZSTD_getErrorCode(rc)) {
      case ZSTD_error_memory_allocation:
        throw IoError("out of memory while unpacking {}", file_.path());
      case ZSTD_error_frameParameter_windowTooLarge:
        throw ContentsError(
            "{}: the zstd frame at byte {} needs a window of more than 128 MiB, expected at most --long={}. "
            "Compress the file again: zstd -d --long=31 FILE.zst && zstd FILE",
            file_.path(), file_.offset(), kWindowLog);
      case ZSTD_error_dictionary_wrong:
        throw ContentsError(
            "{}: the file was compressed with a dictionary, which redco does not have. Unpack it: zstd -d -D "
            "DICTIONARY FILE.zst",
            file_.path());
      default:
        damaged(file_, "zstd", unpacked, ZSTD_getErrorName(rc));
    }
  }

  struct Free {
    void operator()(ZSTD_DCtx* z) const { ZSTD_freeDCtx(z); }
  };

  StoredFile& file_;
  std::unique_ptr<ZSTD_DCtx, Free> z_;
  bool inside_ = false;  // inside a frame, where the file must not end
  bool full_ = false;    // the last call filled all the room
};

}  // namespace

std::unique_ptr<Unpacker> make_unpacker(StoredFile& file) {
  constexpr std::string_view kGzip = "\x1F\x8B";
  // Not more bytes than decide: the rest of a pipe may come much later.
  for (std::size_t n = 1; n <= 4; ++n) {
    file.need(n);
    if (!begins_zstd(file.unread()) && !kGzip.starts_with(file.unread().substr(0, 2))) break;
  }
  const std::string_view start = file.unread();
  const bool gzip = start.starts_with(kGzip), zstd = start.size() >= 4 && begins_zstd(start);
  for (const auto& [end, format, is] : {std::tuple(".gz", "gzip", gzip), std::tuple(".zst", "zstd", zstd)})
    if (!is && file.path().ends_with(end))
      throw ContentsError("{}: named {}, but {}", file.path(), end,
                          start.empty() ? "it is empty; check that it was copied or written completely"
                                        : fmt::format("its first bytes are not {}'s", format));
  if (gzip) return std::make_unique<GzipUnpacker>(file);
  if (zstd) return std::make_unique<ZstdUnpacker>(file);
  return nullptr;
}

}  // namespace redco
