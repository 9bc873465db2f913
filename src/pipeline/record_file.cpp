#include "pipeline/record_file.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "base/error.h"
#include "base/words.h"
#include "pipeline/pipeline.h"

namespace redco {

namespace {

constexpr std::string_view kRecordMagic = "redco records 3\n";
constexpr i64 kBadLinesShown = 5;

u64 hash_of(const RecordFileHeader& h) {
  Hasher hasher;
  hasher.update(&h, offsetof(RecordFileHeader, header_hash));
  return hasher.digest64();
}

}  // namespace

// --- Reading ---

RecordFileHeader RecordFile::header_of(const ReadFile& file) {
  RecordFileHeader h;
  if (file.size() >= static_cast<i64>(sizeof h)) file.pread_exact(0, &h, sizeof h);
  if (std::string_view(h.magic, sizeof h.magic) != kRecordMagic || h.header_hash != hash_of(h))
    throw ContentsError("[data] {} is damaged. Remove it; it will be built again", file.path());
  return h;
}

RecordFile::RecordFile(const std::string& path)
    : file_(ReadFile::open(path)),
      header_(header_of(file_)),
      table_(file_, header_.n_examples, header_.directory) {}

void RecordFile::damaged() const {
  throw ContentsError("[data] {} is damaged. Remove it; it will be built again", file_.path());
}

void RecordFile::verify() const {
  if (!body_has_hash(file_, sizeof header_, header_.body_hash)) damaged();
}

std::string RecordFile::text_at(u64 offset, u64 bytes) const {
  const auto size = static_cast<u64>(file_.size());
  if (offset > size || bytes > size - offset) damaged();
  std::string text(bytes, '\0');
  file_.pread_exact(static_cast<i64>(offset), text.data(), static_cast<i64>(bytes));
  return text;
}

Example RecordFile::get(i64 i) const {
  const RecordPlace p = table_.at(static_cast<u64>(i));
  Example e = examples_from_json(text_at(p.offset, p.bytes)).at(0);
  e.ordinal = i;
  return e;
}

std::string RecordFile::describe() const {
  std::string s =
      fmt::format("{} of at most {}", counted(size(), "example"), counted(header_.longest, "token"));
  if (header_.n_bad > 0)
    s += fmt::format("\n{} skipped (data.skip_bad); the first:{}", counted(header_.n_bad, "bad line"),
                     text_at(header_.bad, header_.bad_bytes));
  return s;
}

// --- Writing ---

RecordWriter::RecordWriter(const std::string& path) : file_(path, sizeof(RecordFileHeader)), places_(file_) {}

void RecordWriter::add(Example e) {
  RecordPlace p;
  p.length = longest_ids(e);
  const std::string text = examples_to_json({std::move(e)});
  p.offset = file_.append(text);
  p.bytes = text.size();
  hasher_.update(text.data(), text.size());
  header_.n_tokens += p.length;
  header_.longest = std::max(header_.longest, p.length);
  places_.add(p);
}

void RecordWriter::add_bad(const std::string& why) {
  if (header_.n_bad++ < kBadLinesShown) bad_ += fmt::format("\n  {}", why);
}

void RecordWriter::finish(const std::string& source) {
  if (places_.size() == 0)
    throw ContentsError(
        "[data] {} has no examples{}", source,
        header_.n_bad == 0 ? "" : fmt::format("; {} bad lines, the first:{}", header_.n_bad, bad_));
  header_.n_examples = places_.size();
  header_.directory = places_.finish();
  header_.bad = file_.append(bad_);
  header_.bad_bytes = bad_.size();
  header_.body_hash = file_.body_hash();
  std::memcpy(header_.magic, kRecordMagic.data(), sizeof header_.magic);
  std::memcpy(header_.hash, hasher_.digest128().hex().data(), sizeof header_.hash);
  header_.header_hash = hash_of(header_);
  file_.commit(&header_, sizeof header_);
}

}  // namespace redco
