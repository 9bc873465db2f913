#include "tokenizers/models/bpe.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizers/models/piece_cache.h"
#include "tokenizers/pre_tokenizers/byte_level.h"

namespace redco {
namespace {

constexpr u32 kNoRank = std::numeric_limits<u32>::max();
// Up to this number of symbols, scanning all pairs for each merge is faster than a heap. A place fits
// kPlaceBits.
constexpr std::size_t kShort = 48;
constexpr unsigned kPlaceBits = 6;

std::size_t hash_of(u64 pair) {
  u64 h = pair * 0x9E3779B97F4A7C15ull;
  return h ^ (h >> 29);
}

struct Symbol {
  i32 id, previous, next;  // indices of the neighbours, -1 at the ends; id -1: merged into its left neighbour
};

struct Candidate {
  u32 rank;
  i32 position;
  i32 left, right, id;
  bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : position > o.position; }
};

}  // namespace

void Merges::add(std::string_view left, std::string_view right) {
  text += left;
  const auto middle = static_cast<u32>(text.size());
  text += right;
  ends.emplace_back(middle, static_cast<u32>(text.size()));
}

std::pair<std::string_view, std::string_view> Merges::at(std::size_t k) const {
  const u32 from = k == 0 ? 0 : ends[k - 1].second;
  const std::string_view all(text);
  return {all.substr(from, ends[k].first - from), all.substr(ends[k].first, ends[k].second - ends[k].first)};
}

struct Bpe::Scratch : ModelScratch {
  PieceCache cache;
  std::vector<i32> ids;
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
  std::string mapped;
};

Bpe::Bpe(Vocab v, const Merges& merges, BpeOptions options, const std::string& where)
    : TokenModel(std::move(v)), options_(std::move(options)), n_merges_(merges.size()) {
  raw_bytes_ = options_.byte_level && options_.continuing_subword_prefix.empty() &&
               options_.end_of_word_suffix.empty() && !options_.byte_fallback;
  if (options_.unk_token) unk_ = vocab().find(*options_.unk_token);
  for (unsigned b = 0; b < 256; ++b) {
    std::string token;
    append_utf8(byte_level_char(static_cast<unsigned char>(b)), token);
    byte_ids_[b] = vocab().find(token);
    fallback_[b] = vocab().find(fmt::format("<0x{:02X}>", b));
  }
  pairs_.assign(std::bit_ceil(2 * merges.size() + 2), kNoPair);
  ranks_.assign(pairs_.size(), kNoRank);
  mask_ = pairs_.size() - 1;
  results_.reserve(merges.size());
  const std::string& prefix = options_.continuing_subword_prefix;
  std::string joined;
  for (std::size_t k = 0; k < merges.size(); ++k) {
    const auto [left, right] = merges.at(k);
    auto id_of = [&](std::string_view token) {
      const i32 id = vocab().find(token);
      if (id < 0)
        throw ContentsError("{}.merges[{}]: '{} {}' needs the token '{}', which is not in the vocabulary",
                            where, k, left.substr(0, 100), right.substr(0, 100), token.substr(0, 200));
      return id;
    };
    const i32 a = id_of(left), b = id_of(right);
    if (right.size() < prefix.size())
      throw ContentsError("{}.merges[{}]: '{}' doesn't start with the continuing_subword_prefix '{}'", where,
                          k, right.substr(0, 100), prefix);
    joined.assign(left);
    joined += right.substr(prefix.size());
    const u64 pair = pair_of(a, b);
    std::size_t s = hash_of(pair) & mask_;
    while (pairs_[s] != kNoPair && pairs_[s] != pair) s = (s + 1) & mask_;
    pairs_[s] = pair;
    ranks_[s] = static_cast<u32>(k);  // a repeated merge has the rank of its last place
    results_.push_back(id_of(joined));
  }
  if (raw_bytes_) {
    byte_ranks_.resize(std::size_t{1} << 16);
    for (std::size_t k = 0; k < byte_ranks_.size(); ++k)
      byte_ranks_[k] = rank_of(byte_ids_[k >> 8], byte_ids_[k & 0xFF]);
  }
}

std::unique_ptr<ModelScratch> Bpe::make_scratch() const { return std::make_unique<Scratch>(); }

// The rank of the merge of two tokens; kNoRank if there is none.
u32 Bpe::rank_of(i32 left, i32 right) const {
  const u64 pair = pair_of(left, right);
  for (std::size_t s = hash_of(pair) & mask_;; s = (s + 1) & mask_) {
    if (pairs_[s] == pair) return ranks_[s];
    if (pairs_[s] == kNoPair) return kNoRank;
  }
}

// The ids of the characters (or bytes) of the piece, before any merge.
void Bpe::first_symbols(std::string_view piece, std::vector<i32>& ids) const {
  ids.clear();
  bool pending = false;  // an unknown character was not yet appended: the next may fuse with it
  auto unknown = [&] {
    if (!options_.unk_token) return;  // characters that are not in the vocabulary are dropped
    if (unk_ < 0)
      throw ContentsError(
          "[tokenizer] '{}' has a character without a token, and the unk_token '{}' is not in the vocabulary",
          piece.substr(0, 100), options_.unk_token->substr(0, 100));
    if (pending && !options_.fuse_unk) ids.push_back(unk_);
    pending = true;
  };
  auto known = [&](i32 id) {
    if (pending) ids.push_back(unk_);
    pending = false;
    ids.push_back(id);
  };
  if (raw_bytes_) {
    for (char c : piece) {
      const i32 id = byte_ids_[static_cast<unsigned char>(c)];
      if (id >= 0)
        known(id);
      else
        unknown();
    }
  } else {
    std::string decorated;
    const char* begin = piece.data();
    const char* end = begin + piece.size();
    for (const char* p = begin; p < end;) {
      const char* start = p;
      next_code_point(p);
      std::string_view c(start, static_cast<std::size_t>(p - start));
      if ((start != begin && !options_.continuing_subword_prefix.empty()) ||
          (p == end && !options_.end_of_word_suffix.empty())) {
        decorated.clear();
        if (start != begin) decorated += options_.continuing_subword_prefix;
        decorated += c;
        if (p == end) decorated += options_.end_of_word_suffix;
        c = decorated;
      }
      const i32 id = vocab().find(c);
      if (id >= 0) {
        known(id);
        continue;
      }
      if (options_.byte_fallback && std::all_of(c.begin(), c.end(), [&](char b) {
            return fallback_[static_cast<unsigned char>(b)] >= 0;
          })) {
        // As in Hugging Face's code, a pending unk comes after these bytes, not before them.
        for (char b : c) ids.push_back(fallback_[static_cast<unsigned char>(b)]);
        continue;
      }
      unknown();
    }
  }
  if (pending) ids.push_back(unk_);
}

// Merges s.ids, the symbols of `piece`. Each step scans all pairs for the lowest rank.
void Bpe::merge_short(std::string_view piece, Scratch& s) const {
  static_assert(kShort < (1u << kPlaceBits));
  const auto n = static_cast<u32>(s.ids.size());
  i32* ids = s.ids.data();
  // Symbols keep their places; a symbol that was merged into its left neighbour is skipped. A key has the
  // pair's rank in the high bits and its place in the low bits, so the minimum is the leftmost pair of the
  // lowest rank.
  std::array<u32, kShort + 4> keys;
  std::array<unsigned char, kShort + 1> next, previous;
  auto key = [](u32 rank, u32 place) { return rank == kNoRank ? kNoRank : rank << kPlaceBits | place; };
  if (raw_bytes_ && piece.size() == n) {  // one symbol per byte: none is unknown
    for (u32 k = 0; k + 1 < n; ++k)
      keys[k] = key(byte_ranks_[static_cast<std::size_t>(static_cast<unsigned char>(piece[k])) << 8 |
                                static_cast<unsigned char>(piece[k + 1])],
                    k);
  } else {
    for (u32 k = 0; k + 1 < n; ++k) keys[k] = key(rank_of(ids[k], ids[k + 1]), k);
  }
  for (u32 k = n - 1; k < n + 3; ++k) keys[k] = kNoRank;
  for (u32 k = 0; k <= n; ++k) {
    next[k] = static_cast<unsigned char>(k + 1);
    previous[k] = static_cast<unsigned char>(k - 1);
  }
  for (;;) {
    u32 least[4] = {kNoRank, kNoRank, kNoRank, kNoRank};
    for (u32 k = 0; k < n; k += 4)
      for (u32 j = 0; j < 4; ++j) least[j] = std::min(least[j], keys[k + j]);
    const u32 best = std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
    if (best == kNoRank) break;
    const u32 place = best & ((1u << kPlaceBits) - 1), gone = next[place], after = next[gone];
    ids[place] = results_[best >> kPlaceBits];
    keys[gone] = kNoRank;
    next[place] = static_cast<unsigned char>(after);
    previous[after] = static_cast<unsigned char>(place);
    keys[place] = after < n ? key(rank_of(ids[place], ids[after]), place) : kNoRank;
    if (place > 0) keys[previous[place]] = key(rank_of(ids[previous[place]], ids[place]), previous[place]);
  }
  u32 to = 0;
  for (u32 k = 0; k < n; k = next[k]) ids[to++] = ids[k];
  s.ids.resize(to);
}

// The same in O(n log n): a heap of candidate pairs over a linked list of symbols; stale candidates are
// skipped.
void Bpe::merge_long(Scratch& s) const {
  std::vector<Symbol>& symbols = s.symbols;
  std::vector<Candidate>& heap = s.heap;
  const auto n = static_cast<i32>(s.ids.size());
  symbols.resize(s.ids.size());
  heap.clear();
  for (i32 k = 0; k < n; ++k)
    symbols[static_cast<std::size_t>(k)] = {s.ids[static_cast<std::size_t>(k)], k - 1,
                                            k + 1 < n ? k + 1 : -1};
  auto at = [&](i32 k) -> Symbol& { return symbols[static_cast<std::size_t>(k)]; };
  auto candidate = [&](i32 k) -> std::optional<Candidate> {
    if (k < 0 || at(k).next < 0) return std::nullopt;
    const u32 rank = rank_of(at(k).id, at(at(k).next).id);
    if (rank == kNoRank) return std::nullopt;
    return Candidate{rank, k, at(k).id, at(at(k).next).id, results_[rank]};
  };
  for (i32 k = 0; k < n; ++k)
    if (auto c = candidate(k)) heap.push_back(*c);
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  auto push = [&](i32 k) {
    if (auto c = candidate(k)) {
      heap.push_back(*c);
      std::push_heap(heap.begin(), heap.end(), std::greater<>());
    }
  };
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const Candidate c = heap.back();
    heap.pop_back();
    Symbol& left = at(c.position);
    if (left.id != c.left || left.next < 0 || at(left.next).id != c.right) continue;
    Symbol& right = at(left.next);
    left.id = c.id;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) at(left.next).previous = c.position;
    push(left.previous);
    push(c.position);
  }
  s.ids.clear();
  for (i32 k = n > 0 ? 0 : -1; k >= 0; k = at(k).next) s.ids.push_back(at(k).id);
}

void Bpe::encode(std::string_view piece, ModelScratch& scratch, std::vector<i32>& out) const {
  if (piece.empty()) return;
  auto& s = static_cast<Scratch&>(scratch);
  const bool cached = piece.size() <= PieceCache::kMaxPiece && !cuts_anywhere();
  PieceCache::Key key{};
  if (cached) {
    key = PieceCache::key_of(piece);
    const auto ids = s.cache.find(piece, key);
    if (ids.data() != nullptr) {
      for (i32 id : ids) out.push_back(id);
      return;
    }
  }
  i32 whole = -1;
  if (options_.ignore_merges) {
    std::string_view token = piece;
    if (raw_bytes_) {
      s.mapped.clear();
      append_byte_level(piece, s.mapped);
      token = s.mapped;
    }
    whole = vocab().find(token);
  }
  if (whole >= 0) {
    s.ids.assign(1, whole);
  } else {
    if (piece.size() > std::numeric_limits<i32>::max() / 4)
      throw ContentsError(
          "[tokenizer] the pre-tokenizer gives a piece of {} bytes; at most 512 MiB are supported",
          piece.size());
    first_symbols(piece, s.ids);
    if (n_merges_ > 0 && s.ids.size() > 1) s.ids.size() <= kShort ? merge_short(piece, s) : merge_long(s);
  }
  if (cached) s.cache.insert(piece, key, s.ids);
  out.insert(out.end(), s.ids.begin(), s.ids.end());
}

}  // namespace redco
