#include "tokenizers/train/train_seeds.h"

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <unordered_set>

#include "base/error.h"
#include "base/ordered_work.h"
#include "base/utf8.h"

namespace redco {
namespace {

// Sorts suffixes by their first `depth` characters (Bentley and Sedgewick 1997, three-way radix quicksort).
class SuffixSort {
 public:
  SuffixSort(const u32* chars, u32 depth) : chars_(chars), depth_(depth) {}

  // REQUIRES: the first `d` characters of all suffixes are equal and not 0.
  void sort(u32* a, std::size_t n, u32 d) const {
    while (n > 1 && d < depth_) {
      if (n < 12) return insertion(a, n, d);
      const u32 pivot = median(at(a[0], d), at(a[n / 2], d), at(a[n - 1], d));
      std::size_t less = 0, k = 0, more = n;
      while (k < more) {
        const u32 c = at(a[k], d);
        if (c < pivot)
          std::swap(a[less++], a[k++]);
        else if (c > pivot)
          std::swap(a[k], a[--more]);
        else
          ++k;
      }
      sort(a, less, d);
      sort(a + more, n - more, d);
      if (pivot == 0) return;  // the words end here: all are equal
      a += less;
      n = more - less;
      ++d;
    }
  }

 private:
  u32 at(u32 suffix, u32 d) const { return chars_[suffix + d]; }
  static u32 median(u32 a, u32 b, u32 c) { return std::max(std::min(a, b), std::min(std::max(a, b), c)); }
  bool before(u32 a, u32 b, u32 d) const {
    for (; d < depth_; ++d) {
      const u32 x = at(a, d), y = at(b, d);
      if (x != y) return x < y;
      if (x == 0) return false;
    }
    return false;
  }
  void insertion(u32* a, std::size_t n, u32 d) const {
    for (std::size_t k = 1; k < n; ++k)
      for (std::size_t j = k; j > 0 && before(a[j], a[j - 1], d); --j) std::swap(a[j], a[j - 1]);
  }

  const u32* chars_;
  u32 depth_;
};

// Finds the seed substrings in the sorted suffixes that start with one character.
class Substrings {
 public:
  Substrings(const CharWords& words, const std::vector<u32>& word_of, u32 max_length)
      : w_(words), word_of_(word_of), max_length_(max_length) {}

  void find(const std::vector<u32>& suffixes, std::size_t begin, std::size_t end, std::vector<Seed>& out) {
    open_.clear();
    u32 shared_before = 0;  // characters in common with the previous suffix
    for (std::size_t k = begin; k < end; ++k) {
      const u32 s = suffixes[k];
      const u32 word = word_of_[s];
      const u64 count = w_.counts[word];
      const u32 shared =
          k + 1 < end ? common(s, suffixes[k + 1]) : 0;  // characters in common with the next suffix
      const u32 length = w_.length(word);
      if (s == w_.begins[word] && count >= 2 && length >= 2 && length <= max_length_ &&
          std::max(shared, shared_before) < length)
        out.push_back({s, length, count});
      // open_: a stack of prefixes of the current suffix that later suffixes may share, shorter ones below.
      // Each has the counts of its suffixes so far, without those of the longer prefix above it.
      u64 carried = count;
      if (!open_.empty() && open_.back().length >= shared) {
        open_.back().count += count;
        carried = 0;
        while (!open_.empty() && open_.back().length > shared) {
          const Seed done = open_.back();
          open_.pop_back();
          if (done.length >= 2 && done.length <= max_length_) out.push_back(done);
          if (!open_.empty() && open_.back().length >= shared)
            open_.back().count += done.count;
          else
            carried = done.count;
        }
        if (shared > 0 && (open_.empty() || open_.back().length < shared))
          open_.push_back({s, shared, carried});
      } else if (shared > 0) {
        open_.push_back({s, shared, carried});
      }
      shared_before = shared;
    }
  }

 private:
  u32 common(u32 a, u32 b) const {
    u32 n = 0;
    while (n <= max_length_ && w_.chars[a + n] == w_.chars[b + n] && w_.chars[a + n] != 0) ++n;
    return n;
  }

  const CharWords& w_;
  const std::vector<u32>& word_of_;
  u32 max_length_;
  std::vector<Seed> open_;
};

}  // namespace

CharWords char_words(const WordCounts& words, u64 min_count, std::string_view always) {
  std::unordered_map<char32_t, u64> counts;
  auto each_char = [](std::string_view word, auto&& f) {
    for (const char *p = word.data(), *end = p + word.size(); p < end;) f(next_code_point(p));
  };
  for (std::size_t k = 0; k < words.size(); ++k)
    each_char(words.word(k), [&](char32_t c) { counts[c] += words.counts[k]; });
  CharWords out;
  std::unordered_set<char32_t> kept;
  each_char(always, [&](char32_t c) {
    kept.insert(c);
    counts[c] += 0;
  });
  for (const auto& [c, n] : counts)
    if (n >= min_count || kept.count(c)) out.alphabet.push_back(c);
  std::sort(out.alphabet.begin(), out.alphabet.end());
  std::unordered_map<char32_t, u32> place;
  for (std::size_t k = 0; k < out.alphabet.size(); ++k) {
    place[out.alphabet[k]] = static_cast<u32>(k + 1);
    out.char_counts.push_back(counts[out.alphabet[k]]);
  }
  for (u32 c = 1; c <= out.alphabet.size(); ++c) {
    if (out.char_counts[c - 1] > 0) continue;
    out.begins.push_back(static_cast<u32>(out.chars.size()));
    out.counts.push_back(0);
    out.chars.insert(out.chars.end(), {c, 0});
  }
  for (std::size_t k = 0; k < words.size(); ++k) {
    u32 length = 0;
    auto end_word = [&] {
      if (length > 0) out.chars.push_back(0);
      length = 0;
    };
    each_char(words.word(k), [&](char32_t c) {
      const auto it = place.find(c);
      if (it == place.end()) return end_word();
      if (length == CharWords::kMaxWord) end_word();
      if (length++ == 0) {
        out.begins.push_back(static_cast<u32>(out.chars.size()));
        out.counts.push_back(words.counts[k]);
      }
      out.chars.push_back(it->second);
    });
    end_word();
    if (out.chars.size() > std::numeric_limits<u32>::max() - (1u << 27))
      throw ContentsError("[tokenizer] the distinct words have more than {} characters; train on less text",
                          out.chars.size());
  }
  return out;
}

std::vector<Seed> frequent_substrings(const CharWords& words, u32 max_length, std::size_t most, int threads) {
  // Bucket sort of the suffixes by their first character.
  std::vector<std::size_t> ends(words.alphabet.size() + 2, 0);
  std::vector<u32> word_of(words.chars.size());
  for (std::size_t w = 0; w < words.size(); ++w)
    std::fill_n(word_of.begin() + words.begins[w], words.length(w) + 1, static_cast<u32>(w));
  for (u32 c : words.chars) ++ends[c + 1];
  for (std::size_t c = 1; c < ends.size(); ++c) ends[c] += ends[c - 1];
  std::vector<u32> suffixes(words.chars.size());
  std::vector<std::size_t> next(ends.begin(), ends.end() - 1);
  for (u32 p = 0; p < words.chars.size(); ++p) suffixes[next[words.chars[p]]++] = p;

  std::vector<Seed> all;
  const SuffixSort sorter(words.chars.data(), max_length + 1);
  OrderedWork<std::size_t, std::vector<Seed>> pool(
      threads,
      [&](std::size_t character, int) {
        const std::size_t begin = ends[character], end = ends[character + 1];
        sorter.sort(suffixes.data() + begin, end - begin, 1);
        std::vector<Seed> seeds;
        Substrings(words, word_of, max_length).find(suffixes, begin, end, seeds);
        return seeds;
      },
      [&](const std::vector<Seed>& seeds) { all.insert(all.end(), seeds.begin(), seeds.end()); });
  for (std::size_t c = 1; c <= words.alphabet.size(); ++c) pool.add(c);  // 0 marks the end of each word
  pool.finish();

  const u32* chars = words.chars.data();
  auto better = [&](const Seed& a, const Seed& b) {
    const u64 x = a.count * a.length, y = b.count * b.length;
    if (x != y) return x > y;
    return std::lexicographical_compare(chars + a.begin, chars + a.begin + a.length, chars + b.begin,
                                        chars + b.begin + b.length);
  };
  if (all.size() > most) {
    std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(most), all.end(), better);
    all.resize(most);
  }
  std::sort(all.begin(), all.end(), better);
  return all;
}

}  // namespace redco
