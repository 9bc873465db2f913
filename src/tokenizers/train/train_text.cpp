#include "tokenizers/train/train_text.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <variant>

#include "base/error.h"
#include "base/file.h"
#include "base/input_file.h"
#include "base/ordered_work.h"
#include "base/utf8.h"
#include "base/words.h"

namespace redco {
namespace {

constexpr std::size_t kTextBlock = std::size_t{1} << 20;
constexpr std::size_t kMaxTextBlock = std::size_t{64} << 20;

struct TextBlock {
  std::string bytes;  // whole lines, or a part of a line that is longer than a block
  const std::string* path;
  bool json;
  u64 offset;  // of the first byte in the decompressed file
  i64 line;    // number of the first line, from 1
};

bool is_json(const std::string& path) {
  const std::string name = name_unpacked(path);
  return name.ends_with(".jsonl") || name.ends_with(".ndjson") || name.ends_with(".json");
}

// The last position at which a line may be split without changing its words: before a space after a letter or
// digit (see PreTokenizer::cuts). 0: none.
std::size_t cut_in_line(std::string_view text) {
  for (std::size_t p = text.size(); p-- > 1;) {
    const char before = text[p - 1];
    if (text[p] == ' ' && ((before >= 'a' && before <= 'z') || (before >= 'A' && before <= 'Z') ||
                           (before >= '0' && before <= '9')))
      return p;
  }
  return 0;
}

// Reads the files in order, in blocks of about 1 MiB.
class BlockReader {
 public:
  explicit BlockReader(const std::vector<std::string>& files) : files_(files) {
    for (const std::string& f : files) {
      const auto info = file_info(f);
      if (!info) throw UsageError("[tokenizer] {} doesn't exist", f);
      if (info->kind == FileInfo::folder)
        throw UsageError("[tokenizer] {} is a folder; name the text files in it", f);
      total_ += info->size;
    }
  }

  std::optional<TextBlock> next() {
    TextBlock b;
    for (;;) {
      if (!in_) {
        if (at_ == files_.size()) return std::nullopt;
        in_.emplace(InputFile::open_text(files_[at_]));
        json_ = is_json(files_[at_]);
        offset_ = in_->position();
        line_ = 1;
      }
      b.path = &files_[at_];
      b.json = json_;
      b.offset = offset_;
      b.line = line_;
      b.bytes.swap(rest_);  // the rest of the previous block
      rest_.clear();
      const bool more = fill(b.bytes);
      offset_ += b.bytes.size();
      if (json_) line_ += std::count(b.bytes.begin(), b.bytes.end(), '\n');
      done_now_ = static_cast<i64>(in_->stored_position());
      if (!more) {
        done_before_ += done_now_;
        done_now_ = 0;
        in_.reset();
        ++at_;
      }
      if (!b.bytes.empty()) return b;
    }
  }

  i64 done() const { return done_before_ + done_now_; }
  i64 total() const { return total_; }

 private:
  // Fills `bytes` and moves the text after the last split position to rest_. false at the end of the file.
  bool fill(std::string& bytes) {
    for (std::size_t want = kTextBlock;; want *= 2) {
      while (bytes.size() < want) {
        const std::size_t had = bytes.size();
        bytes.resize(want);
        const std::size_t n = in_->read(bytes.data() + had, want - had);
        bytes.resize(had + n);
        if (n == 0) return false;
      }
      const std::size_t line = bytes.rfind('\n');
      std::size_t cut = line == std::string::npos ? 0 : line + 1;
      if (cut == 0 && !json_) cut = cut_in_line(bytes);
      if (cut > 0) {
        rest_.assign(bytes, cut);
        bytes.resize(cut);
        return true;
      }
      if (want >= kMaxTextBlock)
        throw ContentsError("{}: {} from byte {} on have no {}; is this a text file?", files_[at_],
                            human_bytes(want), offset_, json_ ? "line break" : "line break or space");
    }
  }

  const std::vector<std::string>& files_;
  std::size_t at_ = 0;
  std::optional<InputFile> in_;
  bool json_ = false;
  std::string rest_;
  u64 offset_ = 0;
  i64 line_ = 1, done_before_ = 0, done_now_ = 0, total_ = 0;
};

// Word -> count: a hash table with open addressing. The words' bytes are concatenated.
class WordTable {
 public:
  WordTable() : slots_(1 << 12) {}

  void add(std::string_view word, u64 n) {
    const u64 hash = XXH3_64bits(word.data(), word.size());
    std::size_t s = hash & (slots_.size() - 1);
    for (;; s = (s + 1) & (slots_.size() - 1)) {
      Slot& slot = slots_[s];
      if (slot.count == 0) break;
      if (slot.hash == hash && slot.length == word.size() &&
          std::memcmp(text_.data() + slot.where, word.data(), word.size()) == 0) {
        slot.count += n;
        return;
      }
    }
    slots_[s] = {hash, text_.size(), static_cast<u32>(word.size()), n};
    text_ += word;
    if (2 * ++used_ > slots_.size()) grow();
  }

  template <class F>
  void each(F&& f) const {
    for (const Slot& s : slots_)
      if (s.count != 0) f(std::string_view(text_).substr(s.where, s.length), s.count);
  }
  std::size_t size() const { return used_; }
  std::size_t bytes() const { return text_.size(); }

 private:
  struct Slot {
    u64 hash = 0, where = 0;
    u32 length = 0;
    u64 count = 0;  // 0: empty
  };
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& o : old) {
      if (o.count == 0) continue;
      std::size_t s = o.hash & (slots_.size() - 1);
      while (slots_[s].count != 0) s = (s + 1) & (slots_.size() - 1);
      slots_[s] = o;
    }
  }

  std::vector<Slot> slots_;
  std::string text_;
  std::size_t used_ = 0;
};

// The counts of one thread.
struct Counter {
  WordTable words;
  u64 text_bytes = 0;

  void sequence(std::string_view text, const PreTokenizer& splitter) {
    text_bytes += text.size();
    splitter.split(text, [&](std::string_view word) { words.add(word, 1); });
  }

  void block(const TextBlock& b, const PreTokenizer& splitter) {
    const std::size_t bad = find_invalid_utf8(b.bytes);
    if (bad != std::string_view::npos)
      throw ContentsError(
          "{}: byte {} (0x{:02X}) is not UTF-8; convert the file (for example: iconv -f latin1 -t utf-8)",
          *b.path, b.offset + bad, static_cast<unsigned char>(b.bytes[bad]));
    std::string_view rest = b.bytes;
    i64 line = b.line;
    for (; !rest.empty(); ++line) {
      const std::size_t end = std::min(rest.find('\n'), rest.size() - 1) + 1;
      std::string_view one = rest.substr(0, end);
      rest.remove_prefix(end);
      if (!b.json)
        sequence(one, splitter);
      else if (one.find_first_not_of(" \t\r\n") != std::string_view::npos)
        sequence(json_text(one, *b.path, line), splitter);
    }
  }

 private:
  static std::string json_text(std::string_view line, const std::string& path, i64 number) {
    // Keeps only the field "text" of the outer object.
    const auto keep = [](int depth, nlohmann::json::parse_event_t event, nlohmann::json& v) {
      return event != nlohmann::json::parse_event_t::key || depth != 1 || v == "text";
    };
    const auto j = nlohmann::json::parse(line, keep, false);
    if (j.is_discarded() || !j.is_object())
      throw ContentsError("{}:{}: not a JSON object: {}", path, number, excerpt(line));
    const auto it = j.find("text");
    if (it == j.end())
      throw ContentsError("{}:{}: the field \"text\" is missing; expected lines {{\"text\": \"...\"}}", path,
                          number);
    if (!it->is_string())
      throw ContentsError("{}:{}: \"text\" is of type {}; expected a string", path, number, it->type_name());
    return it->get<std::string>();
  }
};

}  // namespace

WordCounts count_words(const std::vector<std::string>& files, const PreTokenizer& splitter, int threads,
                       const TextProgress& progress) {
  BlockReader reader(files);
  std::vector<Counter> counters(static_cast<std::size_t>(std::max(1, threads)));
  OrderedWork<TextBlock, std::monostate> pool(
      static_cast<int>(counters.size()),
      [&](const TextBlock& b, int thread) {
        counters[static_cast<std::size_t>(thread)].block(b, splitter);
        return std::monostate();
      },
      nullptr);
  pool.run([&] {
    if (progress) progress(reader.done(), reader.total());
    return reader.next();
  });

  WordTable& all = counters.front().words;
  WordCounts out;
  for (std::size_t k = 0; k < counters.size(); ++k) {
    out.text_bytes += counters[k].text_bytes;
    if (k == 0) continue;
    counters[k].words.each([&](std::string_view word, u64 n) { all.add(word, n); });
    counters[k].words = WordTable();
  }
  struct Found {
    std::string_view word;
    u64 count;
  };
  std::vector<Found> found;
  found.reserve(all.size());
  all.each([&](std::string_view word, u64 n) { found.push_back({word, n}); });
  std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.word < b.word; });
  out.text.reserve(all.bytes());
  out.ends.reserve(found.size());
  out.counts.reserve(found.size());
  for (const Found& f : found) {
    out.text += f.word;
    out.ends.push_back(out.text.size());
    out.counts.push_back(f.count);
  }
  return out;
}

}  // namespace redco
