#include "data/index/index_file.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstring>

#include "base/words.h"
#include "data/index/source_files.h"

namespace redco {

namespace {

constexpr u64 kMaxBadBytes = u64{1} << 26;

u64 hash_of(const IndexHead& head, std::string_view facts) {
  Hasher h;
  h.update(&head, offsetof(IndexHead, hash));
  h.update(facts.data(), facts.size());
  return h.digest64();
}

}  // namespace

// --- Writing ---

IndexWriter::IndexWriter(const std::string& path, const IndexFormat& format, std::size_t facts_bytes)
    : file_(path, static_cast<i64>(sizeof(IndexHead) + facts_bytes)) {
  std::memcpy(head_.magic, format.magic, sizeof head_.magic);
  head_.version = format.version;
  head_.facts_bytes = static_cast<u32>(facts_bytes);
}

void IndexWriter::add_bad(u64 file, std::string line) {
  if (head_.n_bad++ >= kBadShown) return;
  std::ranges::replace(line, '\n', ' ');
  bad_ += fmt::format("{}:{}\n", file, line);
}

namespace {

// The lines of add_bad() with the names of files; false if they are damaged.
bool with_names(const std::string& bad, const std::vector<std::string>& files, std::string& out) {
  for (std::size_t at = 0, end; (end = bad.find('\n', at)) != std::string::npos; at = end + 1) {
    u64 number = 0;
    const auto r = std::from_chars(bad.data() + at, bad.data() + end, number);
    if (r.ec != std::errc()) return false;
    out += name_of_file(files, number) + std::string(r.ptr, bad.data() + end + 1);
  }
  return true;
}

}  // namespace

std::string IndexWriter::describe_bad(const std::vector<std::string>& files) const {
  if (head_.n_bad == 0) return "";
  std::string lines;
  with_names(bad_, files, lines);
  return fmt::format("; {}, the first: {}", counted(static_cast<i64>(head_.n_bad), "bad line"),
                     lines.substr(0, lines.find('\n')));
}

void IndexWriter::finish(const Hash128& data_hash, std::string_view facts) {
  REDCO_CHECK(facts.size() == head_.facts_bytes, "{} bytes of facts, not {}", facts.size(),
              head_.facts_bytes);
  head_.data_hash[0] = data_hash.high;
  head_.data_hash[1] = data_hash.low;
  head_.bad = file_.append(bad_);
  head_.bad_end = head_.bad + bad_.size();
  head_.body_hash = file_.body_hash();
  head_.hash = hash_of(head_, facts);
  std::string begin(reinterpret_cast<const char*>(&head_), sizeof head_);
  begin += facts;
  file_.commit(begin.data(), static_cast<i64>(begin.size()));
}

// --- Reading ---

IndexFile::IndexFile(const std::string& path, const IndexFormat& format, char* facts, std::size_t facts_bytes)
    : file_(std::make_shared<const ReadFile>(ReadFile::open(path))) {
  const auto broken = [&](const std::string& why) {
    return ContentsError("{}: not a complete {}: {}. Remove the file; redco rebuilds it", path, format.what,
                         why);
  };
  const i64 size = file_->size();
  if (size < static_cast<i64>(sizeof head_)) throw broken(fmt::format("{} bytes", size));
  file_->pread_exact(0, &head_, sizeof head_);
  if (std::memcmp(head_.magic, format.magic, sizeof head_.magic) != 0)
    throw broken("its first bytes are wrong");
  if (head_.version != format.version)
    throw broken(fmt::format("it has version {}, not {}", head_.version, format.version));
  const bool whole = head_.facts_bytes == facts_bytes && size >= body();
  if (whole) file_->pread_exact(sizeof head_, facts, static_cast<i64>(facts_bytes));
  if (!whole || head_.hash != hash_of(head_, {facts, facts_bytes}) || head_.bad > head_.bad_end ||
      head_.bad_end > static_cast<u64>(size) || head_.bad_end - head_.bad > kMaxBadBytes)
    throw broken("its header is damaged");
}

ContentsError IndexFile::damaged(const std::string& what) const {
  return ContentsError("{}: {} is damaged. Remove the file; redco rebuilds it", path(), what);
}

std::string IndexFile::bytes(u64 offset, u64 n, const std::string& what) const {
  const auto size = static_cast<u64>(file_->size());
  if (offset > size || n > size - offset) throw damaged(what);
  std::string out(n, '\0');
  file_->pread_exact(static_cast<i64>(offset), out.data(), static_cast<i64>(n));
  return out;
}

std::string IndexFile::bad_lines(const std::vector<std::string>& files) const {
  std::string out;
  if (!with_names(bytes(head_.bad, head_.bad_end - head_.bad, "its list of bad lines"), files, out))
    throw damaged("its list of bad lines");
  return out;
}

std::string IndexFile::describe_bad(const std::vector<std::string>& files) const {
  if (n_bad() == 0) return "";
  std::string lines = bad_lines(files);
  while (lines.ends_with('\n')) lines.pop_back();
  for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 3)
    lines.replace(at, 1, "\n  ");
  return fmt::format("{} skipped (data.skip_bad); the first:\n  {}", counted(n_bad(), "bad line"), lines);
}

void IndexFile::verify() const {
  Hasher h;
  std::string buffer(std::size_t{1} << 20, '\0');
  for (i64 at = body(); at < file_->size();) {
    const i64 n = std::min(static_cast<i64>(buffer.size()), file_->size() - at);
    file_->pread_exact(at, buffer.data(), n);
    h.update(buffer.data(), static_cast<std::size_t>(n));
    at += n;
  }
  if (h.digest64() != head_.body_hash)
    throw ContentsError(
        "{}: the contents differ from the hash in the header. Remove the file; redco rebuilds it", path());
}

}  // namespace redco
