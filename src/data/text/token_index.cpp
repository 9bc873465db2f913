#include "data/text/token_index.h"

#include <cmath>
#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/ordered_work.h"
#include "base/process.h"
#include "data/index/cached_index.h"
#include "data/text/text_blocks.h"

namespace redco {
namespace {

constexpr char kTokenMagic[8] = {'r', 'e', 'd', 'c', 'o', 'T', 'O', 'K'};

struct TokenIndexHeader {
  char magic[8];
  u32 version;
  u32 token_bytes;  // 2 or 4
  u64 n_tokens;
  u64 n_documents;
  u64 text_bytes;
  double entropy;  // nats per token
  i32 max_id;
  u32 vocab_size;    // of the tokenizer
  u64 key[2];        // of the file's name
  u64 data_hash[2];  // XXH3 of the text
  u64 tokens_hash;   // XXH3 of what follows the header
  u64 header_hash;   // XXH3 of all above
};
static_assert(sizeof(TokenIndexHeader) == 104);

u64 hash_of(const TokenIndexHeader& h) {
  return hash64({reinterpret_cast<const char*>(&h), offsetof(TokenIndexHeader, header_hash)});
}

Hash128 key_of(const SourceFiles& files, const TextFiles& text, const Tokenizer& tokenizer) {
  Hasher h;
  put(h, kTokenIndexVersion);
  put(h, static_cast<u64>(text.documents));
  put(h, tokenizer.fingerprint());
  put(h, static_cast<u64>(tokenizer.special().eos.value_or(-1)));
  if (const auto bos = text.bos ? document_bos(tokenizer) : std::nullopt) put(h, static_cast<u64>(*bos));
  files.put_into(h);
  return h.digest128();
}

constexpr u64 kPiece = 65536;  // tokens

// Bytes of n tokens, 0 <= n <= kPiece, and of their bits.
constexpr u64 piece_bytes(u64 n, u64 width) { return n * width + (n + 7) / 8; }
// Bytes of a whole file; without overflow checks.
constexpr u64 body_bytes(u64 n, u64 width) {
  return n / kPiece * piece_bytes(kPiece, width) + piece_bytes(n % kPiece, width);
}

// Collects ids and writes them in pieces.
class TokenWriter {
 public:
  TokenWriter(const std::string& path, i32 vocab_size)
      : file_(DurableFile::create(path, sizeof(TokenIndexHeader))),
        width_(vocab_size <= 65536 ? 2 : 4),
        counts_(static_cast<std::size_t>(vocab_size)) {}

  void add(std::span<const i32> ids) {
    for (const i32 id : ids) {
      REDCO_CHECK(id >= 0 && static_cast<std::size_t>(id) < counts_.size(), "id {} of {}", id,
                  counts_.size());
      ++counts_[static_cast<std::size_t>(id)];
      if (pending_.size() == kPiece) flush();  // not earlier: a document may still end with its last token
      pending_.push_back(id);
    }
    n_ += ids.size();
  }
  void end_document() {
    if (pending_.empty()) return;
    bits_.resize(kPiece / 8);
    bits_[(pending_.size() - 1) / 8] |= static_cast<std::uint8_t>(1u << ((pending_.size() - 1) % 8));
  }

  u64 size() const { return n_; }

  void finish(TokenIndexHeader h) {
    flush();
    h.token_bytes = static_cast<u32>(width_);
    h.n_tokens = n_;
    h.tokens_hash = hash_.digest64();
    h.max_id = -1;
    h.entropy = 0;
    for (std::size_t id = 0; id < counts_.size(); ++id) {
      if (counts_[id] == 0) continue;
      h.max_id = static_cast<i32>(id);
      const double p = static_cast<double>(counts_[id]) / static_cast<double>(n_);
      h.entropy -= p * std::log(p);
    }
    h.header_hash = hash_of(h);
    file_.pwrite(0, &h, sizeof h);
    file_.commit();
  }

 private:
  void flush() {
    buffer_.assign(piece_bytes(pending_.size(), width_), '\0');
    char* p = buffer_.data();
    for (const i32 id : pending_) {
      const auto narrow = static_cast<std::uint16_t>(id);
      std::memcpy(p, width_ == 2 ? static_cast<const void*>(&narrow) : &id, width_);
      p += width_;
    }
    bits_.resize(kPiece / 8);
    std::memcpy(p, bits_.data(), (pending_.size() + 7) / 8);
    hash_.update(buffer_.data(), buffer_.size());
    file_.append(buffer_);
    pending_.clear();
    bits_.clear();
  }

  DurableFile file_;
  std::size_t width_;
  std::vector<u64> counts_;
  std::vector<i32> pending_;
  std::vector<std::uint8_t> bits_;
  std::string buffer_;
  Hasher hash_;
  u64 n_ = 0;
};

// Blocks to tokenize; several short lines go together.
struct Text {
  std::string text;
  bool ends_document;
};
struct Ids {
  std::vector<i32> ids;
  bool ends_document;
};
constexpr std::size_t kTokenBytesTogether = std::size_t{256} << 10;  // bytes

// Writes the index.
void write_token_index(const std::string& path, const Hash128& key, const TextFiles& text,
                       const SourceFiles& files, const Tokenizer& tokenizer, const BuildProgress& progress) {
  i64 done = 0;
  TokenWriter writer(path, tokenizer.vocab_size());
  TokenIndexHeader header{};
  std::memcpy(header.magic, kTokenMagic, sizeof kTokenMagic);
  header.version = kTokenIndexVersion;
  header.vocab_size = static_cast<u32>(tokenizer.vocab_size());
  header.key[0] = key.high;
  header.key[1] = key.low;
  Hasher data;
  bool document_empty = true;
  const std::optional<i32> eos = tokenizer.special().eos;
  const std::optional<i32> bos = text.bos ? document_bos(tokenizer) : std::nullopt;
  OrderedWork<std::vector<Text>, std::vector<Ids>> work(
      usable_cpus(),
      [&](std::vector<Text> texts, int) {
        std::vector<Ids> out;
        for (const Text& t : texts) out.push_back({tokenizer.encode(t.text, false), t.ends_document});
        return out;
      },
      [&](std::vector<Ids> blocks) {
        for (Ids& b : blocks) {
          if (document_empty && !b.ids.empty() && bos) b.ids.insert(b.ids.begin(), *bos);
          document_empty &= b.ids.empty();
          if (b.ends_document && !document_empty && eos) b.ids.push_back(*eos);
          writer.add(b.ids);
          if (!b.ends_document) continue;
          if (!document_empty) {
            writer.end_document();
            ++header.n_documents;
          }
          document_empty = true;
        }
      });
  std::vector<Text> together;
  std::size_t bytes_together = 0;
  auto hand_over = [&] {
    work.add(std::exchange(together, {}));
    bytes_together = 0;
  };
  BlockSinks sinks;
  sinks.text = [&](std::string_view part) {
    data.update(part.data(), part.size());
    header.text_bytes += part.size();
  };
  sinks.position = [&](i64 stored) {
    if (progress) progress(done + stored, files.total_size());
  };
  sinks.block = [&](std::string_view block, bool ends_document) {
    together.push_back({std::string(block), ends_document});
    bytes_together += block.size();
    if (bytes_together >= kTokenBytesTogether) hand_over();
  };
  for (std::size_t k = 0; k < text.paths.size(); ++k) {
    read_blocks(text.paths[k], text.documents, tokenizer, sinks);
    put(data, header.text_bytes);  // the borders between files are part of the text
    done += files.size(k);
    files.check_unchanged(k);
  }
  hand_over();
  work.finish();
  if (writer.size() == 0) throw ContentsError("{}: the files have no text", files.words());
  const Hash128 h = data.digest128();
  header.data_hash[0] = h.high;
  header.data_hash[1] = h.low;
  writer.finish(header);
}

}  // namespace

std::optional<i32> document_bos(const Tokenizer& tokenizer) {
  const std::optional<i32> bos = tokenizer.special().bos;
  const std::string text = "a";
  const std::vector<i32> ids = tokenizer.encode(text), plain = tokenizer.encode(text, false);
  const bool added = bos && !ids.empty() && ids.front() == *bos && (plain.empty() || plain.front() != *bos);
  return added ? bos : std::nullopt;
}

std::string build_token_index(const TextFiles& text, const Tokenizer& tokenizer,
                              const std::string& cache_folder, const BuildProgress& progress) {
  const double begin = seconds();
  const SourceFiles files(text.paths, cache_folder);
  const Hash128 key = key_of(files, text, tokenizer);
  const std::string path = index_path(cache_folder, key, "tokens");
  return find_or_build<TokenIndex>(
      path, begin, [&] { write_token_index(path, key, text, files, tokenizer, progress); },
      [](const TokenIndex& i) {
        return CachedIndex{.unit = "document", .examples = i.n_documents(), .tokens = i.size()};
      });
}

struct TokenIndex::State {
  ReadFile file;
  TokenIndexHeader header;
};

TokenIndex::TokenIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
TokenIndex::TokenIndex(TokenIndex&&) noexcept = default;
TokenIndex& TokenIndex::operator=(TokenIndex&&) noexcept = default;
TokenIndex::~TokenIndex() = default;

TokenIndex TokenIndex::open(const std::string& path) {
  auto s = std::make_unique<State>(State{ReadFile::open(path), {}});
  TokenIndexHeader& h = s->header;
  auto broken = [&](const std::string& why) -> ContentsError {
    return ContentsError("{}: not a complete token index: {}. Remove the file; redco rebuilds it", path, why);
  };
  if (s->file.size() < static_cast<i64>(sizeof h)) throw broken(fmt::format("{} bytes", s->file.size()));
  s->file.pread_exact(0, &h, sizeof h);
  if (std::memcmp(h.magic, kTokenMagic, sizeof kTokenMagic) != 0) throw broken("its first bytes are wrong");
  if (h.version != kTokenIndexVersion)
    throw broken(fmt::format("it has version {}, not {}", h.version, kTokenIndexVersion));
  if (h.header_hash != hash_of(h) || (h.token_bytes != 2 && h.token_bytes != 4))
    throw broken("its header is damaged");
  const u64 room = static_cast<u64>(s->file.size()) - sizeof h;
  if (h.n_tokens > room || body_bytes(h.n_tokens, h.token_bytes) != room)
    throw broken(fmt::format("it has {} bytes for {} tokens", s->file.size(), h.n_tokens));
  return TokenIndex(std::move(s));
}

i64 TokenIndex::size() const { return static_cast<i64>(state_->header.n_tokens); }
i64 TokenIndex::n_documents() const { return static_cast<i64>(state_->header.n_documents); }
i64 TokenIndex::text_bytes() const { return static_cast<i64>(state_->header.text_bytes); }
i32 TokenIndex::max_id() const { return state_->header.max_id; }
const std::string& TokenIndex::path() const { return state_->file.path(); }
double TokenIndex::unigram_entropy() const { return state_->header.entropy; }

std::string TokenIndex::data_hash() const {
  return Hash128{state_->header.data_hash[0], state_->header.data_hash[1]}.hex();
}

void TokenIndex::read(i64 begin, std::span<i32> out, std::span<std::uint8_t> ends) const {
  const auto n = static_cast<i64>(out.size());
  REDCO_CHECK(begin >= 0 && n <= size() && begin <= size() - n, "tokens {}+{} of {}", begin, n, size());
  REDCO_CHECK(ends.empty() || ends.size() == out.size(), "{} ends of {} tokens", ends.size(), n);
  for (i64 done = 0; done < n;) {
    const i64 at = begin + done, piece = at / static_cast<i64>(kPiece),
              inside = at % static_cast<i64>(kPiece);
    const i64 count = std::min(n - done, static_cast<i64>(kPiece) - inside);
    read_piece(
        piece, inside, out.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)),
        ends.empty() ? ends : ends.subspan(static_cast<std::size_t>(done), static_cast<std::size_t>(count)));
    done += count;
  }
}

// Tokens of one piece.
void TokenIndex::read_piece(i64 piece, i64 inside, std::span<i32> out, std::span<std::uint8_t> ends) const {
  const auto n = static_cast<i64>(out.size());
  const i64 width = state_->header.token_bytes;
  const u64 whole_piece = piece_bytes(kPiece, static_cast<u64>(width));
  const i64 base = static_cast<i64>(sizeof(TokenIndexHeader) + static_cast<u64>(piece) * whole_piece);
  // u16s are read into the upper half of `out` and widened from the front, so overwritten ones were read
  // before.
  char* raw = reinterpret_cast<char*>(out.data()) + n * (4 - width);
  state_->file.pread_exact(base + inside * width, raw, n * width);
  u32 largest = 0;
  for (i64 k = 0; k < n; ++k) {
    if (width == 2) {
      std::uint16_t v;
      std::memcpy(&v, raw + 2 * k, 2);
      out[static_cast<std::size_t>(k)] = v;
    }
    largest = std::max(largest, static_cast<u32>(out[static_cast<std::size_t>(k)]));
  }
  if (n > 0 && largest > static_cast<u32>(max_id()))
    throw ContentsError(
        "{}: an id of {} in tokens {}..{} is above the maximum of {}. Remove the file; redco rebuilds it",
        path(), largest, piece * static_cast<i64>(kPiece) + inside,
        piece * static_cast<i64>(kPiece) + inside + n - 1, max_id());
  if (ends.empty()) return;
  const i64 tokens = std::min(static_cast<i64>(kPiece), size() - piece * static_cast<i64>(kPiece));
  std::vector<std::uint8_t> bits(static_cast<std::size_t>((inside + n - 1) / 8 - inside / 8 + 1));
  state_->file.pread_exact(base + tokens * width + inside / 8, bits.data(), static_cast<i64>(bits.size()));
  for (i64 k = 0; k < n; ++k) {
    const i64 bit = inside % 8 + k;
    ends[static_cast<std::size_t>(k)] = bits[static_cast<std::size_t>(bit / 8)] >> (bit % 8) & 1;
  }
}

void TokenIndex::verify() const {
  Hasher h;
  std::string buffer(std::size_t{1} << 20, '\0');
  for (i64 at = sizeof(TokenIndexHeader); at < state_->file.size();) {
    const i64 n = std::min(static_cast<i64>(buffer.size()), state_->file.size() - at);
    state_->file.pread_exact(at, buffer.data(), n);
    h.update(buffer.data(), static_cast<std::size_t>(n));
    at += n;
  }
  if (h.digest64() != state_->header.tokens_hash)
    throw ContentsError(
        "{}: the tokens differ from the hash in the header. Remove the file; redco rebuilds it", path());
}

void TokenIndex::check_vocab(i64 rows) const {
  if (max_id() >= rows)
    throw ContentsError(
        "{}: the data have token id {}, but the model's embedding has {} rows. The tokenizer does not fit "
        "the model. Set model.tokenizer to the model's own",
        path(), max_id(), rows);
}

void check_vocab(const Tokenizer& tokenizer, i64 rows) {
  if (tokenizer.vocab_size() > rows)
    throw ContentsError(
        "[tokenizer] '{}' has ids up to {}, but the model's embedding has {} rows. Set model.tokenizer to the "
        "model's own, or, if tokens were added to it, model.resize_embeddings: true",
        tokenizer.name(), tokenizer.vocab_size() - 1, rows);
}

}  // namespace redco
