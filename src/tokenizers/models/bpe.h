// Byte-pair encoding (Sennrich et al. 2016) with the details of Hugging Face's BPE model. The adjacent pair
// with the lowest rank is merged first, the leftmost of equals, until no adjacent pair has a merge.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include "tokenizers/models/model.h"

namespace redco {

// Two adjacent token ids as one key.
inline u64 pair_of(i32 left, i32 right) {
  return static_cast<u64>(static_cast<u32>(left)) << 32 | static_cast<u32>(right);
}
constexpr u64 kNoPair = ~0ull;

struct BpeOptions {
  std::optional<std::string> unk_token;
  std::string continuing_subword_prefix, end_of_word_suffix;  // "": none
  bool fuse_unk = false;       // adjacent unknown characters become one unk token
  bool byte_fallback = false;  // unknown characters become <0x..> tokens if the vocabulary has them
  bool ignore_merges = false;  // a piece that is in the vocabulary becomes that token
  bool byte_level = false;     // the last pre-tokenizer is ByteLevel
};

// The left and right sides of each merge, lowest rank first.
struct Merges {
  std::string text;
  std::vector<std::pair<u32, u32>>
      ends;  // end offsets of left and right in `text`; each starts at the previous end
  void add(std::string_view left, std::string_view right);
  std::size_t size() const { return ends.size(); }
  std::pair<std::string_view, std::string_view> at(std::size_t k) const;
};

class Bpe : public TokenModel {
 public:
  // ContentsError, starting with `where`, for a merge whose sides or result are not in the vocabulary. A
  // missing unk token is a ContentsError when a text needs it.
  Bpe(Vocab vocab, const Merges& merges, BpeOptions options, const std::string& where);

  std::unique_ptr<ModelScratch> make_scratch() const override;
  void encode(std::string_view piece, ModelScratch& scratch, std::vector<i32>& out) const override;
  bool takes_bytes() const override { return raw_bytes_; }
  bool cuts_anywhere() const override { return raw_bytes_ && n_merges_ == 0 && !options_.ignore_merges; }

 private:
  struct Scratch;

  u32 rank_of(i32 left, i32 right) const;
  void first_symbols(std::string_view piece, std::vector<i32>& ids) const;
  void merge_short(std::string_view piece, Scratch& s) const;
  void merge_long(Scratch& s) const;

  BpeOptions options_;
  bool raw_bytes_;
  i32 unk_ = -1;
  std::size_t n_merges_;
  std::array<i32, 256> byte_ids_{};  // id of each byte's character; only with raw_bytes_
  std::array<i32, 256> fallback_{};  // ids of <0x00> ... <0xFF>; -1 if missing
  std::vector<i32> results_;         // result of each merge, by rank
  std::vector<u64> pairs_;           // hash table with open addressing: pair_of each merge
  std::vector<u32> ranks_;           // rank of the pair in the same slot
  std::vector<u32> byte_ranks_;      // by left byte << 8 | right byte; only with raw_bytes_
  std::size_t mask_ = 0;
};

}  // namespace redco
