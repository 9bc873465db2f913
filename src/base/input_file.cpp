#include "base/input_file.h"

#include <cstring>
#include <utility>

#include "base/ascii.h"
#include "base/error.h"
#include "base/text_encoding.h"
#include "base/unpack.h"
#include "base/words.h"

namespace redco {

namespace {
// First bytes of files that are given as texts by mistake.
constexpr std::pair<std::string_view, const char*> kNoTexts[] = {
    {"PAR1", "a Parquet file. Give it the ending .parquet, or set data.format: parquet"},
    {"ARROW1", "an Arrow file. Give it the ending .arrow, or set data.format: arrow"},
    {"PK\x03\x04", "a zip archive, as .xlsx and .docx are. Unpack it, or save it as CSV or text"},
    {"%PDF-", "a PDF. Convert it, e.g. with pdftotext"}};
}  // namespace

struct InputFile::State {
  explicit State(const std::string& path) : stored(path), unpacker(make_unpacker(stored)) {}

  StoredFile stored;
  std::unique_ptr<Unpacker> unpacker;  // null: the file is not compressed
  u64 out = 0;
  std::string ahead;  // unpacked bytes that open_text() looked at

  std::size_t read(char* to, std::size_t n) {
    if (unpacker) return unpacker->read(to, n, out);
    stored.need(1);
    n = stored.unread().copy(to, n);
    stored.skip(n);
    return n;
  }
};

InputFile::InputFile(std::unique_ptr<State> s) : state_(std::move(s)) {}
InputFile::InputFile(InputFile&&) noexcept = default;
InputFile& InputFile::operator=(InputFile&&) noexcept = default;
InputFile::~InputFile() = default;

InputFile InputFile::open(const std::string& path) { return InputFile(std::make_unique<State>(path)); }

const std::string& InputFile::path() const { return state_->stored.path(); }
bool InputFile::is_compressed() const { return state_->unpacker != nullptr; }
u64 InputFile::position() const { return state_->out; }
u64 InputFile::stored_position() const { return state_->stored.offset(); }

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
  for (const auto& [begin, what] : kNoTexts)
    if (start.starts_with(begin)) throw ContentsError("{}: not a text but {}", path, what);
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
  const std::size_t got = state_->read(to, n);
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
                          human_bytes(max_line_) + "; write several shorter lines or records");
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

std::string name_unpacked(const std::string& path) {
  std::string name = ascii_lower(path);
  for (const std::string_view end : {".gz", ".zst"})
    if (name.ends_with(end)) return name.substr(0, name.size() - end.size());
  return name;
}

}  // namespace redco
