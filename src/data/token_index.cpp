#include "data/token_index.h"

#include <cmath>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "data/text_blocks.h"

namespace redco {
namespace {

constexpr char kMagic[8] = {'r', 'e', 'd', 'c', 'o', 'T', 'O', 'K'};

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
  u64 data_hash[2];  // XXH3 of the unpacked text
  u64 tokens_hash;   // XXH3 of what follows the header
  u64 header_hash;   // XXH3 of all above
};
static_assert(sizeof(TokenIndexHeader) == 104);

u64 hash_of(const TokenIndexHeader& h) {
  return hash64({reinterpret_cast<const char*>(&h), offsetof(TokenIndexHeader, header_hash)});
}

void put(Hasher& h, u64 v) { h.update(&v, sizeof v); }

void put(Hasher& h, std::string_view text) {
  put(h, text.size());
  h.update(text.data(), text.size());
}

struct FileState {
  i64 size;
  i64 changed;  // ns
  bool operator==(const FileState&) const = default;
};

FileState state_of(const std::string& path) {
  const auto info = file_info(path);
  if (!info) throw UsageError("[data] {} doesn't exist", path);
  if (info->kind == FileInfo::folder)
    throw UsageError("[data] {} is a folder; name the text files in it", path);
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) throw IoError("{}: {}", path, error.message());
  return {info->size, static_cast<i64>(time.time_since_epoch().count())};
}

Hash128 key_of(const TextFiles& text, const Tokenizer& tokenizer) {
  if (text.paths.empty()) throw UsageError("[data] no text files are named");
  Hasher h;
  put(h, kTokenIndexVersion);
  put(h, static_cast<u64>(text.documents));
  put(h, tokenizer.fingerprint());
  put(h, static_cast<u64>(tokenizer.special().eos.value_or(-1)));
  for (const std::string& path : text.paths) {
    const FileState s = state_of(path);
    std::error_code error;
    const auto whole = std::filesystem::canonical(path, error);
    put(h, error ? path : whole.string());
    put(h, static_cast<u64>(s.size));
    put(h, static_cast<u64>(s.changed));
  }
  return h.digest128();
}

std::string path_of(const TextFiles& text, const Hash128& key, const std::string& folder) {
  std::string stem = file_name(text.paths.front()).substr(0, 60);
  return join_path(folder, fmt::format("{}-{}.tokens", stem, key.hex()));
}

bool whole(const std::string& path) {
  if (!exists(path)) return false;
  try {
    TokenIndex::open(path).verify();
    return true;
  } catch (const ContentsError&) {
    return false;  // built again, over it
  }
}

// Collects ids and writes them in the file's width.
class TokenWriter {
 public:
  TokenWriter(const std::string& path, i32 vocab_size)
      : file_(DurableFile::create(path, sizeof(TokenIndexHeader))),
        width_(vocab_size <= 65536 ? 2 : 4),
        counts_(static_cast<std::size_t>(vocab_size)) {}

  void add(std::span<const i32> ids) {
    buffer_.resize(ids.size() * width_);
    for (std::size_t k = 0; k < ids.size(); ++k) {
      const i32 id = ids[k];
      REDCO_CHECK(id >= 0 && static_cast<std::size_t>(id) < counts_.size(), "id {} of {}", id,
                  counts_.size());
      ++counts_[static_cast<std::size_t>(id)];
      const auto narrow = static_cast<std::uint16_t>(id);
      if (width_ == 2)
        std::memcpy(buffer_.data() + 2 * k, &narrow, 2);
      else
        std::memcpy(buffer_.data() + 4 * k, &id, 4);
    }
    hash_.update(buffer_.data(), buffer_.size());
    file_.append(buffer_);
    n_ += ids.size();
  }

  u64 size() const { return n_; }

  void finish(TokenIndexHeader h) {
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
  DurableFile file_;
  std::size_t width_;
  std::vector<u64> counts_;
  std::string buffer_;
  Hasher hash_;
  u64 n_ = 0;
};

std::string joined(const std::vector<std::string>& paths) {
  std::string s = paths.front();
  if (paths.size() > 1) s += fmt::format(" and {} more", paths.size() - 1);
  return s;
}

}  // namespace

std::string token_index_path(const TextFiles& text, const Tokenizer& tokenizer,
                             const std::string& cache_folder) {
  return path_of(text, key_of(text, tokenizer), cache_folder);
}

std::string build_token_index(const TextFiles& text, const Tokenizer& tokenizer,
                              const std::string& cache_folder, const BuildProgress& progress) {
  const Hash128 key = key_of(text, tokenizer);
  const std::string path = path_of(text, key, cache_folder);
  if (whole(path)) return path;
  make_dirs(cache_folder);

  std::vector<FileState> before;
  i64 total = 0, done = 0;
  for (const std::string& p : text.paths) total += before.emplace_back(state_of(p)).size;
  TokenWriter writer(path, tokenizer.vocab_size());
  TokenIndexHeader header{};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.version = kTokenIndexVersion;
  header.vocab_size = static_cast<u32>(tokenizer.vocab_size());
  header.key[0] = key.high;
  header.key[1] = key.low;
  Hasher data;
  bool document_empty = true;
  BlockSinks sinks;
  sinks.raw = [&](std::string_view bytes) {
    data.update(bytes.data(), bytes.size());
    header.text_bytes += bytes.size();
  };
  sinks.position = [&](i64 stored) {
    if (progress) progress(done + stored, total);
  };
  sinks.block = [&](std::string_view block, bool ends_document) {
    std::vector<i32> ids = tokenizer.encode(block, false);
    document_empty &= ids.empty();
    if (ends_document && !document_empty) {
      if (tokenizer.special().eos) ids.push_back(*tokenizer.special().eos);
      ++header.n_documents;
    }
    if (ends_document) document_empty = true;
    writer.add(ids);
  };
  for (std::size_t k = 0; k < text.paths.size(); ++k) {
    read_blocks(text.paths[k], text.documents, tokenizer, sinks);
    put(data, header.text_bytes);  // where one file ends and the next begins is part of the text
    done += before[k].size;
    if (state_of(text.paths[k]) != before[k])
      throw ContentsError("{}: the file changed while it was read; start again when it is complete",
                          text.paths[k]);
  }
  if (writer.size() == 0) throw ContentsError("{}: there is no text in it", joined(text.paths));
  const Hash128 h = data.digest128();
  header.data_hash[0] = h.high;
  header.data_hash[1] = h.low;
  writer.finish(header);
  return path;
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
    return ContentsError("{}: no whole token index: {}; remove it, and it is built again", path, why);
  };
  if (s->file.size() < static_cast<i64>(sizeof h)) throw broken(fmt::format("{} bytes", s->file.size()));
  s->file.pread_exact(0, &h, sizeof h);
  if (std::memcmp(h.magic, kMagic, sizeof kMagic) != 0) throw broken("it doesn't begin as one");
  if (h.version != kTokenIndexVersion)
    throw broken(fmt::format("it has version {}, not {}", h.version, kTokenIndexVersion));
  if (h.header_hash != hash_of(h) || (h.token_bytes != 2 && h.token_bytes != 4))
    throw broken("its header is damaged");
  const u64 room = static_cast<u64>(s->file.size()) - sizeof h;
  if (room % h.token_bytes != 0 || room / h.token_bytes != h.n_tokens)
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

double TokenIndex::unigram_entropy_per_byte() const {
  return unigram_entropy() * static_cast<double>(size()) / static_cast<double>(text_bytes());
}

void TokenIndex::read(i64 begin, std::span<i32> out) const {
  const auto n = static_cast<i64>(out.size());
  REDCO_CHECK(begin >= 0 && n <= size() && begin <= size() - n, "tokens {}+{} of {}", begin, n, size());
  const i64 width = state_->header.token_bytes;
  const i64 at = static_cast<i64>(sizeof(TokenIndexHeader)) + begin * width;
  // u16s are read into the upper half of `out` and widened from the front: what is overwritten has been read.
  char* raw = reinterpret_cast<char*>(out.data()) + n * (4 - width);
  state_->file.pread_exact(at, raw, n * width);
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
        "{}: an id of {} among tokens {}..{}, above the largest, {}; remove the file, and it is built again",
        path(), largest, begin, begin + n - 1, max_id());
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
        "{}: the tokens differ from the header's hash; remove the file, and it is built again", path());
}

void TokenIndex::check_vocab(i64 rows) const {
  if (max_id() >= rows)
    throw ContentsError(
        "{}: the data has token id {}, but the model's embedding has {} rows: this is another vocabulary's "
        "tokenizer; "
        "set model.tokenizer to the model's own",
        path(), max_id(), rows);
}

void check_vocab(const Tokenizer& tokenizer, i64 rows) {
  if (tokenizer.vocab_size() > rows)
    throw ContentsError(
        "[tokenizer] '{}' has ids up to {}, but the model's embedding has {} rows: this is another "
        "vocabulary's "
        "tokenizer; set model.tokenizer to the model's own",
        tokenizer.name(), tokenizer.vocab_size() - 1, rows);
}

}  // namespace redco
