#include "data/text_blocks.h"

#include "base/error.h"
#include "base/gzip.h"
#include "base/utf8.h"

namespace redco {
namespace {

constexpr std::size_t kBlock = std::size_t{1} << 20;
constexpr std::size_t kMaxBlock = std::size_t{16} << 20;
constexpr std::size_t kMaxDocument = std::size_t{64} << 20;  // a line or paragraph

void check_utf8(std::string_view text, u64 offset, const std::string& path) {
  const std::size_t bad = find_invalid_utf8(text);
  if (bad != std::string_view::npos)
    throw ContentsError(
        "{}: byte {} (0x{:02X}) is no UTF-8; convert the file (iconv -f latin1 -t utf-8, for one) or use "
        "model.tokenizer=bytes",
        path, offset + bad, static_cast<unsigned char>(text[bad]));
}

// Where to end a block of `text`, which goes on; 0: nowhere yet.
std::size_t block_end(std::string_view text, const Tokenizer& tokenizer) {
  if (const auto cut = tokenizer.last_cut(text)) return *cut;
  if (const auto line = text.rfind('\n'); line != std::string_view::npos) return line + 1;
  if (text.size() < kMaxBlock) return 0;
  return text.size() - incomplete_utf8_tail(text);
}

void whole_file(InputFile& in, const Tokenizer& tokenizer, const BlockSinks& sinks) {
  std::string pending;
  u64 offset = 0;  // of pending in the file
  std::size_t want = kBlock;
  for (bool end = false; !end;) {
    while (pending.size() < want && !end) {
      const std::size_t had = pending.size();
      pending.resize(want);
      const std::size_t n = in.read(pending.data() + had, want - had);
      pending.resize(had + n);
      sinks.raw(std::string_view(pending).substr(had));
      end = n == 0;
    }
    const std::size_t size = end ? pending.size() : block_end(pending, tokenizer);
    if (size == 0 && !end) {
      want = std::min(2 * want, kMaxBlock);
      continue;
    }
    const std::string_view text = std::string_view(pending).substr(0, size);
    if (!tokenizer.takes_any_bytes()) check_utf8(text, offset, in.path());
    sinks.block(text, end);
    pending.erase(0, size);
    offset += size;
    want = kBlock;
    sinks.position(static_cast<i64>(in.stored_position()));
  }
}

// Lines, or paragraphs of them.
void pieces(InputFile& in, Documents documents, const Tokenizer& tokenizer, const BlockSinks& sinks) {
  std::string document, buffer(kBlock, '\0');
  u64 begin = 0, offset = 0;  // of the document, of the line
  std::string line;
  auto flush = [&] {
    if (document.empty()) return;
    if (!tokenizer.takes_any_bytes()) check_utf8(document, begin, in.path());
    sinks.block(document, true);
    document.clear();
  };
  auto end_line = [&] {
    const u64 next = offset + line.size() + 1;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || documents == Documents::line) flush();
    if (!line.empty()) {
      if (document.empty())
        begin = offset;
      else
        document += '\n';
      document += line;
    }
    if (documents == Documents::line) flush();
    offset = next;
    line.clear();
  };
  while (const std::size_t n = in.read(buffer.data(), buffer.size())) {
    std::string_view part(buffer.data(), n);
    sinks.raw(part);
    while (!part.empty()) {
      const auto at = part.find('\n');
      line += part.substr(0, at);
      if (line.size() + document.size() > kMaxDocument)
        throw ContentsError("{}: the {} at byte {} is longer than {} MiB", in.path(),
                            documents == Documents::line ? "line" : "paragraph",
                            document.empty() ? offset : begin, kMaxDocument >> 20);
      if (at == std::string_view::npos) break;
      end_line();
      part.remove_prefix(at + 1);
    }
    sinks.position(static_cast<i64>(in.stored_position()));
  }
  if (!line.empty()) end_line();
  flush();
}

}  // namespace

void read_blocks(const std::string& path, Documents documents, const Tokenizer& tokenizer,
                 const BlockSinks& sinks) {
  InputFile in = InputFile::open(path);
  if (documents == Documents::file)
    whole_file(in, tokenizer, sinks);
  else
    pieces(in, documents, tokenizer, sinks);
}

}  // namespace redco
