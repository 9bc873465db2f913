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
#include "data/index/index_file.h"
#include "data/text/text_blocks.h"

namespace redco {
namespace {

constexpr IndexFormat kTokenFormat = {
    {'r', 'e', 'd', 'c', 'o', 'T', 'O', 'K'}, kTokenIndexVersion, "token index"};

struct TokenFacts {
  u64 n_tokens, n_documents, text_bytes;
  double entropy;  // nats per token
  i32 max_id;
  u32 token_bytes;  // 2 or 4
};

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
      : index_(path, kTokenFormat, sizeof(TokenFacts)),
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

  void finish(const Hash128& data_hash, TokenFacts h) {
    flush();
    h.token_bytes = static_cast<u32>(width_);
    h.n_tokens = n_;
    h.max_id = -1;
    h.entropy = 0;
    for (std::size_t id = 0; id < counts_.size(); ++id) {
      if (counts_[id] == 0) continue;
      h.max_id = static_cast<i32>(id);
      const double p = static_cast<double>(counts_[id]) / static_cast<double>(n_);
      h.entropy -= p * std::log(p);
    }
    index_.finish(data_hash, h);
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
    index_.file().append(buffer_);
    pending_.clear();
    bits_.clear();
  }

  IndexWriter index_;
  std::size_t width_;
  std::vector<u64> counts_;
  std::vector<i32> pending_;
  std::vector<std::uint8_t> bits_;
  std::string buffer_;
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
void write_token_index(const std::string& path, const TextFiles& text, const SourceFiles& files,
                       const Tokenizer& tokenizer, const BuildProgress& progress) {
  i64 done = 0;
  TokenWriter writer(path, tokenizer.vocab_size());
  TokenFacts facts{};
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
            ++facts.n_documents;
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
    facts.text_bytes += part.size();
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
    put(data, facts.text_bytes);  // the borders between files are part of the text
    done += files.size(k);
    files.check_unchanged(k);
  }
  hand_over();
  work.finish();
  if (writer.size() == 0) throw ContentsError("{}: the files have no text", files.words());
  writer.finish(data.digest128(), facts);
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
      path, begin, [&] { write_token_index(path, text, files, tokenizer, progress); },
      [](const TokenIndex& i) {
        return CachedIndex{.unit = "document", .examples = i.n_documents(), .tokens = i.size()};
      });
}

struct TokenIndex::State {
  IndexFile file;
  TokenFacts facts;
};

TokenIndex::TokenIndex(std::unique_ptr<State> state) : state_(std::move(state)) {}
TokenIndex::TokenIndex(TokenIndex&&) noexcept = default;
TokenIndex& TokenIndex::operator=(TokenIndex&&) noexcept = default;
TokenIndex::~TokenIndex() = default;

TokenIndex TokenIndex::open(const std::string& path) {
  TokenFacts facts{};
  IndexFile file = IndexFile::open(path, kTokenFormat, facts);
  const u64 room = static_cast<u64>(file.file().size() - file.body());
  if ((facts.token_bytes != 2 && facts.token_bytes != 4) || facts.n_tokens > room ||
      body_bytes(facts.n_tokens, facts.token_bytes) != room)
    throw ContentsError(
        "{}: not a complete token index: it has {} bytes for {} tokens. Remove the file; redco "
        "rebuilds it",
        path, file.file().size(), facts.n_tokens);
  return TokenIndex(std::make_unique<State>(State{std::move(file), facts}));
}

i64 TokenIndex::size() const { return static_cast<i64>(state_->facts.n_tokens); }
i64 TokenIndex::n_documents() const { return static_cast<i64>(state_->facts.n_documents); }
i64 TokenIndex::text_bytes() const { return static_cast<i64>(state_->facts.text_bytes); }
i32 TokenIndex::max_id() const { return state_->facts.max_id; }
const std::string& TokenIndex::path() const { return state_->file.path(); }
double TokenIndex::unigram_entropy() const { return state_->facts.entropy; }

std::string TokenIndex::data_hash() const { return state_->file.data_hash(); }

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
  const i64 width = state_->facts.token_bytes;
  const u64 whole_piece = piece_bytes(kPiece, static_cast<u64>(width));
  const i64 base = state_->file.body() + static_cast<i64>(static_cast<u64>(piece) * whole_piece);
  // u16s are read into the upper half of `out` and widened from the front, so overwritten ones were read
  // before.
  char* raw = reinterpret_cast<char*>(out.data()) + n * (4 - width);
  state_->file.file().pread_exact(base + inside * width, raw, n * width);
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
  state_->file.file().pread_exact(base + tokens * width + inside / 8, bits.data(),
                                  static_cast<i64>(bits.size()));
  for (i64 k = 0; k < n; ++k) {
    const i64 bit = inside % 8 + k;
    ends[static_cast<std::size_t>(k)] = bits[static_cast<std::size_t>(bit / 8)] >> (bit % 8) & 1;
  }
}

void TokenIndex::verify() const { state_->file.verify(); }

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
