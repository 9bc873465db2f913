#include "tokenizers/train/train_bpe.h"

#include <algorithm>
#include <array>
#include <queue>
#include <unordered_map>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizers/models/bpe.h"
#include "tokenizers/pre_tokenizers/byte_level.h"

namespace redco {
namespace {

constexpr u32 kNone = ~0u;

// The count of each adjacent pair: a hash table with open addressing.
class PairCounts {
 public:
  struct Entry {
    u64 pair = kNoPair;
    i64 count = 0;
    u32 fresh = kNone;  // list of the words in which the current merge created the pair
  };
  PairCounts() : slots_(1 << 16) {}

  // The entry of the pair, created if missing. Valid until the next call.
  Entry& at(u64 pair) {
    std::size_t s = place(pair);
    if (slots_[s].pair == kNoPair) {
      if (2 * ++used_ > slots_.size()) {
        grow();
        s = place(pair);
      }
      slots_[s].pair = pair;
    }
    return slots_[s];
  }

 private:
  std::size_t place(u64 pair) const {
    u64 h = pair * 0x9E3779B97F4A7C15ull;
    h ^= h >> 32;
    std::size_t s = h & (slots_.size() - 1);
    while (slots_[s].pair != kNoPair && slots_[s].pair != pair) s = (s + 1) & (slots_.size() - 1);
    return s;
  }
  void grow() {
    std::vector<Entry> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Entry& e : old)
      if (e.pair != kNoPair) slots_[place(e.pair)] = e;
  }

  std::vector<Entry> slots_;
  std::size_t used_ = 0;
};

// A candidate for the next merge: its count when it was queued, and the list of words in which it was created
// since it was queued last.
struct CountedPair {
  i64 count;
  u64 pair;
  u32 list;
  bool operator<(const CountedPair& o) const { return count != o.count ? count < o.count : pair > o.pair; }
};

class Learner {
 public:
  Learner(const WordCounts& words, const BpeTraining& options) : counts_(words.counts) {
    for (const std::string& s : options.special) add_token(s);
    alphabet(options);
    symbols_.reserve(words.text.size());
    begins_.reserve(words.size());
    lengths_.reserve(words.size());
    for (char c : words.text) symbols_.push_back(byte_ids_[static_cast<unsigned char>(c)]);
    for (std::size_t w = 0; w < words.size(); ++w) {
      begins_.push_back(w == 0 ? 0 : words.ends[w - 1]);
      lengths_.push_back(static_cast<u32>(words.word(w).size()));
    }
  }

  LearnedBpe learn(const BpeTraining& options, const std::function<void(i64)>& progress) {
    count_all();
    while (out_.tokens.size() < static_cast<std::size_t>(options.vocab_size) && !queue_.empty()) {
      CountedPair top = queue_.top();
      queue_.pop();
      const i64 now = pairs_.at(top.pair).count;
      if (top.count != now) {
        top.count = now;
        queue_.push(top);
        continue;
      }
      if (top.count < std::max(i64{1}, options.min_frequency)) break;
      merge(top);
      if (progress) progress(static_cast<i64>(out_.tokens.size()));
    }
    for (std::size_t w = 0; w < lengths_.size(); ++w) out_.n_tokens += counts_[w] * lengths_[w];
    return finish();
  }

 private:
  i32 add_token(const std::string& token) {
    const auto [it, added] = ids_.emplace(token, static_cast<i32>(out_.tokens.size()));
    if (added) out_.tokens.push_back(token);
    return it->second;
  }

  // Adds the 256 bytes in the order of their characters.
  void alphabet(const BpeTraining& options) {
    std::array<int, 256> order;
    for (int b = 0; b < 256; ++b) order[static_cast<std::size_t>(b)] = b;
    auto character = [](int b) { return byte_level_char(static_cast<unsigned char>(b)); };
    std::sort(order.begin(), order.end(), [&](int a, int b) { return character(a) < character(b); });
    for (int b : order) {
      std::string token;
      append_utf8(character(b), token);
      byte_ids_[static_cast<std::size_t>(b)] = add_token(token);
    }
    if (out_.tokens.size() > static_cast<std::size_t>(std::max(0, options.vocab_size)))
      throw UsageError(
          "[tokenizer] --vocab-size {} is too small for the special tokens ({}) and the alphabet of 256 "
          "bytes; take at least {}",
          options.vocab_size, options.special.size(), out_.tokens.size());
  }

  void count_all() {
    for (std::size_t w = 0; w < begins_.size(); ++w) {
      const i32* s = symbols_.data() + begins_[w];
      for (u32 k = 0; k + 1 < lengths_[w]; ++k)
        change(pair_of(s[k], s[k + 1]), static_cast<i64>(counts_[w]), static_cast<u32>(w));
    }
    queue_fresh();
  }

  // word: the word in which the pair is created; kNone: no word.
  void change(u64 pair, i64 by, u32 word) {
    PairCounts::Entry& e = pairs_.at(pair);
    e.count += by;
    if (word == kNone) return;
    if (e.fresh == kNone) {
      if (free_.empty()) {
        e.fresh = static_cast<u32>(lists_.size());
        lists_.emplace_back();
      } else {
        e.fresh = free_.back();
        free_.pop_back();
      }
      fresh_.push_back(pair);
    }
    std::vector<u32>& list = lists_[e.fresh];
    if (list.empty() || list.back() != word) list.push_back(word);
  }

  void queue_fresh() {
    for (u64 pair : fresh_) {
      PairCounts::Entry& e = pairs_.at(pair);
      if (e.count > 0)
        queue_.push({e.count, pair, e.fresh});
      else
        release(e.fresh);
      e.fresh = kNone;
    }
    fresh_.clear();
  }

  void release(u32 list) {
    std::vector<u32>().swap(lists_[list]);
    free_.push_back(list);
  }

  void merge(const CountedPair& top) {
    const auto left = static_cast<i32>(top.pair >> 32), right = static_cast<i32>(top.pair & 0xFFFFFFFF);
    const auto at = [&](i32 id) -> const std::string& { return out_.tokens[static_cast<std::size_t>(id)]; };
    const i32 id = add_token(at(left) + at(right));
    merges_.push_back(top.pair);
    const std::vector<u32> words = std::move(lists_[top.list]);
    for (u32 w : words) merge_in(w, left, right, id);
    release(top.list);
    queue_fresh();
  }

  // Replaces each `left right` in the word by `id`, from left to right.
  void merge_in(u32 w, i32 left, i32 right, i32 id) {
    i32* s = symbols_.data() + begins_[w];
    const u32 n = lengths_[w];
    const auto count = static_cast<i64>(counts_[w]);
    u32 to = 0;
    for (u32 from = 0; from < n; ++from, ++to) {
      if (s[from] != left || from + 1 == n || s[from + 1] != right) {
        s[to] = s[from];
        continue;
      }
      if (to > 0) {
        change(pair_of(s[to - 1], left), -count, kNone);
        change(pair_of(s[to - 1], id), count, w);
      }
      ++from;
      if (from + 1 < n) {
        change(pair_of(right, s[from + 1]), -count, kNone);
        change(pair_of(id, s[from + 1]), count, w);
      }
      s[to] = id;
    }
    lengths_[w] = to;
  }

  // A pair can be merged twice if two merges give the same token. The later rank is kept.
  LearnedBpe finish() {
    std::unordered_map<u64, std::size_t> last;
    for (std::size_t k = 0; k < merges_.size(); ++k) last[merges_[k]] = k;
    for (std::size_t k = 0; k < merges_.size(); ++k)
      if (last[merges_[k]] == k)
        out_.merges.emplace_back(out_.tokens[merges_[k] >> 32], out_.tokens[merges_[k] & 0xFFFFFFFF]);
    return std::move(out_);
  }

  const std::vector<u64>& counts_;  // count of each word
  std::vector<i32> symbols_;        // of all words; a word keeps its start and gets shorter
  std::vector<u64> begins_;
  std::vector<u32> lengths_;
  std::array<i32, 256> byte_ids_{};
  std::unordered_map<std::string, i32> ids_;
  LearnedBpe out_;
  PairCounts pairs_;
  std::vector<u64> merges_;
  std::vector<std::vector<u32>> lists_;  // lists of words
  std::vector<u32> free_;                // unused lists
  std::vector<u64> fresh_;               // pairs that got a list since the last merge
  std::priority_queue<CountedPair> queue_;
};

}  // namespace

LearnedBpe learn_bpe(const WordCounts& words, const BpeTraining& options,
                     const std::function<void(i64)>& progress) {
  if (words.size() >= kNone)
    throw ContentsError("[tokenizer] {} distinct words; at most {} are supported. Train on less text",
                        words.size(), kNone - 1);
  return Learner(words, options).learn(options, progress);
}

}  // namespace redco
