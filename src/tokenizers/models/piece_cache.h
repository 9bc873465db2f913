// A cache of tokenized pieces. Not thread-safe. Its memory is bounded (about 6 MiB); it is cleared when full.
#pragma once

#include <xxhash.h>

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

class PieceCache {
 public:
  static constexpr std::size_t kMaxPiece = 128;  // bytes; longer pieces rarely repeat

  // The hash of a piece, computed once for find() and insert().
  struct Key {
    u64 word;  // the bytes (up to 8), else their hash
    u64 hash;
  };

  static Key key_of(std::string_view piece) {
    const std::size_t n = piece.size();
    const char* p = piece.data();
    u64 word = 0;
    if (n <= 8) {  // two overlapping loads: for equal n, different bytes give different words
      if (n >= 4) {
        u32 a, b;
        std::memcpy(&a, p, 4);
        std::memcpy(&b, p + n - 4, 4);
        word = static_cast<u64>(a) << 32 | b;
      } else if (n > 0) {
        word = static_cast<unsigned char>(p[0]) |
               static_cast<u64>(static_cast<unsigned char>(p[n / 2])) << 8 |
               static_cast<u64>(static_cast<unsigned char>(p[n - 1])) << 16;
      }
      u64 h = (word ^ n) * 0x9E3779B97F4A7C15ull;
      return {word, h ^ (h >> 32)};
    }
    word = XXH3_64bits(p, n);
    return {word, word};
  }

  // The ids of `piece`, or a span with data() == nullptr if it is not cached.
  std::span<const i32> find(std::string_view piece, const Key& key) const {
    if (slots_.empty()) return {};
    for (std::size_t s = key.hash & mask_;; s = (s + 1) & mask_) {
      const Slot& slot = slots_[s];
      if (slot.length == 0) return {};
      if (slot.word != key.word || slot.length != piece.size()) continue;
      const i32* ids = words_.data() + slot.where;
      if (piece.size() > 8 && std::memcmp(ids + slot.count, piece.data(), piece.size()) != 0) continue;
      return {ids, slot.count};
    }
  }

  // REQUIRES 0 < piece.size() <= kMaxPiece, and find() did not find the piece.
  void insert(std::string_view piece, const Key& key, std::span<const i32> ids) {
    const std::size_t text_words = piece.size() > 8 ? (piece.size() + 3) / 4 : 0;
    if (2 * (used_ + 1) > slots_.size() || words_.size() + ids.size() + text_words > kMaxWords) make_room();
    std::size_t s = key.hash & mask_;
    while (slots_[s].length != 0) s = (s + 1) & mask_;
    slots_[s] = {key.word, static_cast<u32>(words_.size()), static_cast<std::uint16_t>(piece.size()),
                 static_cast<std::uint16_t>(ids.size())};
    words_.insert(words_.end(), ids.begin(), ids.end());
    if (text_words != 0) {
      words_.resize(words_.size() + text_words);
      std::memcpy(words_.data() + words_.size() - text_words, piece.data(), piece.size());
    }
    ++used_;
  }

 private:
  struct Slot {
    u64 word = 0;
    u32 where = 0;             // index in words_: the ids, then the text if it is longer than 8 bytes
    std::uint16_t length = 0;  // of the piece; 0: empty slot
    std::uint16_t count = 0;   // ids
  };
  static constexpr std::size_t kMaxSlots = 1 << 17, kMaxWords = 1 << 20;

  void make_room() {
    if (slots_.size() >= kMaxSlots || words_.size() >= kMaxWords / 2) {
      std::fill(slots_.begin(), slots_.end(), Slot());
      words_.assign(1, 0);
      used_ = 0;
      return;
    }
    if (words_.empty()) words_.assign(1, 0);  // the span of a piece without ids must have data()
    std::vector<Slot> old(std::max<std::size_t>(1024, slots_.size() * 2));
    old.swap(slots_);
    mask_ = slots_.size() - 1;
    for (const Slot& slot : old) {
      if (slot.length == 0) continue;
      // The hash is computed from word and length (see key_of).
      u64 h = slot.word;
      if (slot.length <= 8) {
        h = (slot.word ^ slot.length) * 0x9E3779B97F4A7C15ull;
        h ^= h >> 32;
      }
      std::size_t s = h & mask_;
      while (slots_[s].length != 0) s = (s + 1) & mask_;
      slots_[s] = slot;
    }
  }

  std::vector<Slot> slots_;
  std::vector<i32> words_;
  std::size_t mask_ = 0, used_ = 0;
};

}  // namespace redco
