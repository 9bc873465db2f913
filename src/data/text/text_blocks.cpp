#include "data/text/text_blocks.h"

#include <algorithm>

#include "base/error.h"
#include "base/input_file.h"
#include "base/text_encoding.h"
#include "base/utf8.h"

namespace redco {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr std::size_t kMaxBlock = std::size_t{16} << 20;
constexpr std::size_t kMaxDocument = std::size_t{64} << 20;  // a line or paragraph

// The text of a file, in parts. Without a byte order mark, with \n for \r\n, and of valid UTF-8 if asked.
class TextParts {
 public:
  TextParts(const std::string& path, bool check_utf8)
      : in_(InputFile::open_text(path)), check_(check_utf8), offset_(in_.position()) {}

  const std::string& path() const { return in_.path(); }
  i64 stored_position() const { return static_cast<i64>(in_.stored_position()); }

  // The next part, of about `n` bytes; empty only at the end.
  std::string_view next(std::size_t n) {
    for (;;) {
      const std::size_t had = rest_.size();
      rest_.resize(had + n);
      const std::size_t got = in_.read(rest_.data() + had, n);
      rest_.resize(had + got);
      // A character or \r\n that the next part completes waits for it.
      std::size_t whole = rest_.size();
      if (got > 0) {
        if (check_) whole -= incomplete_utf8_tail(rest_);
        if (whole == rest_.size() && rest_.back() == '\r') --whole;
      }
      part_.assign(rest_, 0, whole);
      rest_.erase(0, whole);
      if (check_) check();
      offset_ += whole;
      remove_carriage_returns();
      if (!part_.empty() || got == 0) return part_;
    }
  }

 private:
  void check() const {
    const std::size_t bad = find_invalid_utf8(part_);
    if (bad != std::string::npos)
      throw ContentsError(
          "{}: byte {} (0x{:02X}) is not UTF-8. Convert the file, e.g. with iconv -f LATIN1 -t UTF-8, or set "
          "model.tokenizer=bytes",
          in_.path(), offset_ + bad, static_cast<unsigned char>(part_[bad]));
  }
  void remove_carriage_returns() {
    std::size_t to = std::min(part_.find('\r'), part_.size());
    for (std::size_t i = to; i < part_.size(); ++i)
      if (part_[i] != '\r' || i + 1 == part_.size() || part_[i + 1] != '\n') part_[to++] = part_[i];
    if (to < part_.size()) note_crlf(in_.path());
    part_.resize(to);
  }

  InputFile in_;
  bool check_;
  u64 offset_;  // of rest_ in the unpacked file
  std::string rest_, part_;
};

// Where to end a block of `text`, which more text follows; 0: nowhere yet.
std::size_t block_end(std::string_view text, const Tokenizer& tokenizer) {
  if (const auto cut = tokenizer.last_cut(text)) return *cut;
  if (const auto line = text.rfind('\n'); line != std::string_view::npos) return line + 1;
  if (text.size() < kMaxBlock) return 0;
  return text.size() - incomplete_utf8_tail(text);
}

void whole_file(TextParts& in, const Tokenizer& tokenizer, const BlockSinks& sinks) {
  std::string pending;
  std::size_t want = kBlock;
  for (bool end = false; !end;) {
    while (pending.size() < want && !end) {
      const std::string_view part = in.next(want - pending.size());
      sinks.text(part);
      pending += part;
      end = part.empty();
    }
    const std::size_t size = end ? pending.size() : block_end(pending, tokenizer);
    if (size == 0 && !end) {
      want = std::min(2 * want, kMaxBlock);
      continue;
    }
    sinks.block(std::string_view(pending).substr(0, size), end);
    pending.erase(0, size);
    want = kBlock;
    sinks.position(in.stored_position());
  }
}

// Lines, or paragraphs of them.
void pieces(TextParts& in, Documents documents, const BlockSinks& sinks) {
  std::string document, line;
  u64 begin = 1, number = 1;  // of the document's first line, of the line; from 1
  auto flush = [&] {
    if (document.empty()) return;
    sinks.block(document, true);
    document.clear();
  };
  auto end_line = [&] {
    if (line.empty() || documents == Documents::line) flush();
    if (!line.empty()) {
      if (document.empty())
        begin = number;
      else
        document += '\n';
      document += line;
    }
    if (documents == Documents::line) flush();
    ++number;
    line.clear();
  };
  for (std::string_view part; !(part = in.next(kBlock)).empty();) {
    sinks.text(part);
    while (!part.empty()) {
      const auto at = part.find('\n');
      line += part.substr(0, at);
      if (line.size() + document.size() > kMaxDocument)
        throw ContentsError("{}:{}: the {} that begins here is longer than {} MiB", in.path(),
                            document.empty() ? number : begin,
                            documents == Documents::line ? "line" : "paragraph", kMaxDocument >> 20);
      if (at == std::string_view::npos) break;
      end_line();
      part.remove_prefix(at + 1);
    }
    sinks.position(in.stored_position());
  }
  if (!line.empty()) end_line();
  flush();
}

}  // namespace

void read_blocks(const std::string& path, Documents documents, const Tokenizer& tokenizer,
                 const BlockSinks& sinks) {
  TextParts in(path, !tokenizer.takes_any_bytes());
  if (documents == Documents::file)
    whole_file(in, tokenizer, sinks);
  else
    pieces(in, documents, sinks);
}

}  // namespace redco
