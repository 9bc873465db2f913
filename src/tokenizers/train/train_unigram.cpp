#include "tokenizers/train/train_unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <variant>

#include "base/error.h"
#include "base/ordered_work.h"
#include "base/utf8.h"
#include "tokenizers/train/train_seeds.h"

namespace redco {
namespace {

constexpr u32 kNoPiece = ~0u;

struct Piece {
  u32 begin, length;  // in CharWords::chars
  double score;       // log probability
};

// The pieces as a trie. The children of a node are adjacent and sorted by character.
class PieceTrie {
 public:
  PieceTrie(const std::vector<Piece>& pieces, const u32* chars, std::size_t alphabet)
      : first_(alphabet + 1, kNoPiece) {
    std::vector<u32> order(pieces.size());
    for (u32 k = 0; k < order.size(); ++k) order[k] = k;
    auto text = [&](u32 k) { return std::span(chars + pieces[k].begin, pieces[k].length); };
    std::sort(order.begin(), order.end(), [&](u32 a, u32 b) {
      const auto x = text(a), y = text(b);
      return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end());
    });
    // Breadth-first construction: a node has the range of sorted pieces that start with its characters.
    struct Range {
      u32 from, to;
    };
    std::vector<Range> ranges;
    auto children = [&](Range r, u32 depth, auto&& add) {
      while (r.from < r.to) {
        const u32 c = text(order[r.from])[depth];
        u32 to = r.from + 1;
        while (to < r.to && text(order[to])[depth] == c) ++to;
        const bool here = text(order[r.from]).size() == depth + 1;
        nodes_.push_back({c, 0, 0, here ? order[r.from] : kNoPiece});
        ranges.push_back({r.from + (here ? 1 : 0), to});
        add(c);
        r.from = to;
      }
    };
    children({0, static_cast<u32>(order.size())}, 0,
             [&](u32 c) { first_[c] = static_cast<u32>(nodes_.size() - 1); });
    std::size_t level_end = nodes_.size();
    u32 depth = 1;
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (n == level_end) {
        level_end = nodes_.size();
        ++depth;
      }
      const auto begin = static_cast<u32>(nodes_.size());
      children(ranges[n], depth, [](u32) {});
      nodes_[n].children = begin;
      nodes_[n].n_children = static_cast<u32>(nodes_.size()) - begin;
    }
  }

  // Calls f(length, piece) for each piece that is a prefix of `text`, shortest first. A 0 ends the text.
  template <class F>
  void each_prefix(const u32* text, F&& f) const {
    u32 at = first_[*text];
    for (u32 length = 1; at != kNoPiece; ++length) {
      const Node& node = nodes_[at];
      if (node.piece != kNoPiece) f(length, node.piece);
      at = child(node, text[length]);
    }
  }

 private:
  struct Node {
    u32 character, children, n_children, piece;
  };
  u32 child(const Node& node, u32 c) const {
    u32 from = node.children, n = node.n_children;
    while (n > 8) {
      const u32 half = n / 2;
      const bool right = nodes_[from + half].character <= c;
      from += right ? half : 0;
      n = right ? n - half : half;
    }
    for (u32 k = from; k < from + n && nodes_[k].character <= c; ++k)
      if (nodes_[k].character == c) return k;
    return kNoPiece;
  }

  std::vector<u32> first_;  // indexed by character
  std::vector<Node> nodes_;
};

// The derivative of log gamma (Beal 2003, Appendix C). It is about log(x) - 1/2x for large x and lower for
// small x, which acts as a sparse prior.
double digamma(double x) {
  double result = 0;
  for (; x < 7; ++x) result -= 1 / x;
  x -= 0.5;
  const double y = 1 / (x * x);
  return result + std::log(x) + y / 24 - 7.0 / 960 * y * y + 31.0 / 8064 * y * y * y -
         127.0 / 30720 * y * y * y * y;
}

class UnigramLearner {
 public:
  UnigramLearner(const WordCounts& words, const UnigramTraining& options)
      : o_(options),
        words_(char_words(words, static_cast<u64>(std::max(i64{1}, options.min_frequency)), options.always)) {
    if (std::all_of(words_.counts.begin(), words_.counts.end(), [](u64 n) { return n == 0; }))
      throw ContentsError("[tokenizer] no character occurs {} times or more; lower --min-frequency",
                          o_.min_frequency);
    if (static_cast<i64>(words_.alphabet.size()) > o_.n_pieces)
      throw UsageError(
          "[tokenizer] the text has {} characters, but after the special tokens and bytes --vocab-size "
          "leaves {} pieces. Raise --vocab-size by at least {}, or drop rare characters with a larger "
          "--min-frequency",
          words_.alphabet.size(), o_.n_pieces, static_cast<i64>(words_.alphabet.size()) - o_.n_pieces);
    u64 total = 0;
    for (std::size_t w = 0; w < words_.size(); ++w) total += words_.counts[w] * words_.length(w);
    // An expected count is at most the number of characters, so scaled sums fit into 62 bits.
    scale_ = std::exp2(61 - std::ceil(std::log2(static_cast<double>(total) + 1)));
  }

  LearnedUnigram learn(const std::function<void(i64)>& progress) {
    seed();
    const auto enough = static_cast<std::size_t>(o_.n_pieces * 11 / 10);
    for (;;) {
      for (int k = 0; k < o_.n_sub_iterations; ++k) maximize(expected_counts());
      if (progress) progress(static_cast<i64>(pieces_.size()));
      if (pieces_.size() <= enough) break;
      const std::size_t before = pieces_.size();
      prune(enough);
      if (pieces_.size() == before) break;
    }
    return finish();
  }

 private:
  static constexpr u32 kBlock = 4096;  // words per block

  void seed() {
    // Characters come first: pieces_[c - 1] is always the character c.
    std::vector<u32> where(words_.alphabet.size() + 1);
    for (u32 p = 0; p < words_.chars.size(); ++p) where[words_.chars[p]] = p;
    for (u32 c = 1; c < where.size(); ++c)
      pieces_.push_back({where[c], 1, std::max(1.0, static_cast<double>(words_.char_counts[c - 1]))});
    const i64 most = std::max(i64{0}, o_.seed_size - static_cast<i64>(pieces_.size()));
    for (const Seed& s :
         frequent_substrings(words_, o_.max_piece_length, static_cast<std::size_t>(most), o_.threads))
      pieces_.push_back({s.begin, s.length, static_cast<double>(s.count) * s.length});
    double sum = 0;
    for (const Piece& p : pieces_) sum += p.score;
    for (Piece& p : pieces_) p.score = std::log(p.score) - std::log(sum);
  }

  // Calls f(thread, word) for all words, in o_.threads threads.
  template <class F>
  void each_word(F&& f) {
    OrderedWork<std::size_t, std::monostate> pool(
        o_.threads,
        [&](std::size_t begin, int thread) {
          const std::size_t end = std::min(words_.size(), begin + kBlock);
          for (std::size_t w = begin; w < end; ++w) f(thread, w);
          return std::monostate();
        },
        nullptr);
    for (std::size_t begin = 0; begin < words_.size(); begin += kBlock) pool.add(begin);
    pool.finish();
  }

  struct Edge {
    u32 from, to, piece;
  };

  // The expected count of each piece in the text, over all segmentations of each word (the E step).
  std::vector<double> expected_counts() {
    const PieceTrie trie(pieces_, words_.chars.data(), words_.alphabet.size());
    std::vector<double> probability(pieces_.size());
    for (std::size_t k = 0; k < pieces_.size(); ++k) probability[k] = std::exp(pieces_[k].score);
    // Probabilities of prefixes and suffixes are long doubles: their 15-bit exponent represents 256
    // characters of probability e^-40 without underflow.
    struct State {
      std::vector<i64> sums;
      std::vector<long double> forward, backward;
      std::vector<Edge> edges;
    };
    std::vector<State> states(static_cast<std::size_t>(o_.threads));
    for (State& s : states) s.sums.assign(pieces_.size(), 0);
    each_word([&](int thread, std::size_t w) {
      State& s = states[static_cast<std::size_t>(thread)];
      const u32 n = words_.length(w);
      const u32* text = words_.chars.data() + words_.begins[w];
      s.forward.assign(n + 1, 0);
      s.backward.assign(n + 1, 0);
      s.edges.clear();
      s.forward[0] = s.backward[n] = 1;
      for (u32 i = 0; i < n; ++i)
        trie.each_prefix(text + i, [&](u32 length, u32 piece) {
          s.forward[i + length] += s.forward[i] * probability[piece];
          s.edges.push_back({i, i + length, piece});
        });
      const long double share = static_cast<long double>(words_.counts[w]) * scale_ / s.forward[n];
      for (std::size_t k = s.edges.size(); k-- > 0;) {
        const Edge& e = s.edges[k];
        const long double rest = probability[e.piece] * s.backward[e.to];
        s.backward[e.from] += rest;
        s.sums[e.piece] += std::llrint(static_cast<double>(s.forward[e.from] * rest * share));
      }
    });
    std::vector<double> expected(pieces_.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
      i64 sum = 0;
      for (const State& s : states) sum += s.sums[k];
      expected[k] = static_cast<double>(sum) / scale_;
    }
    return expected;
  }

  // The M step: scores from expected counts. Rare pieces are removed, characters are kept.
  void maximize(const std::vector<double>& expected) {
    constexpr double kLeast = 0.5;
    double sum = 0;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < pieces_.size(); ++k) {
      if (expected[k] < kLeast && pieces_[k].length > 1) continue;
      pieces_[kept] = pieces_[k];
      pieces_[kept].score = std::max(expected[k], kLeast);
      sum += pieces_[kept++].score;
    }
    pieces_.resize(kept);
    const double log_sum = digamma(sum);
    for (Piece& p : pieces_) p.score = digamma(p.score) - log_sum;
  }

  // The best segmentation of text[0, n) without the piece `without`, from the last piece to the first. Empty
  // if there is none.
  struct Best {
    double score;
    u32 from, piece;
  };
  void segment(const PieceTrie& trie, const u32* text, u32 n, u32 without, std::vector<Best>& best,
               std::vector<u32>& out) const {
    constexpr double kNever = -std::numeric_limits<double>::infinity();
    best.assign(n + 1, {kNever, 0, kNoPiece});
    best[0].score = 0;
    for (u32 i = 0; i < n; ++i)
      trie.each_prefix(text + i, [&](u32 length, u32 piece) {
        if (i + length > n || piece == without) return;
        const double score = best[i].score + pieces_[piece].score;
        if (score > best[i + length].score) best[i + length] = {score, i, piece};
      });
    out.clear();
    for (u32 i = n; i > 0 && best[i].piece != kNoPiece; i = best[i].from) out.push_back(best[i].piece);
  }

  std::vector<u64> used_counts(const PieceTrie& trie) {
    struct State {
      std::vector<u64> counts;
      std::vector<Best> best;
      std::vector<u32> out;
    };
    std::vector<State> states(static_cast<std::size_t>(o_.threads));
    for (State& s : states) s.counts.assign(pieces_.size(), 0);
    each_word([&](int thread, std::size_t w) {
      State& s = states[static_cast<std::size_t>(thread)];
      segment(trie, words_.chars.data() + words_.begins[w], words_.length(w), kNoPiece, s.best, s.out);
      for (u32 piece : s.out) s.counts[piece] += words_.counts[w];
    });
    for (std::size_t t = 1; t < states.size(); ++t)
      for (std::size_t k = 0; k < pieces_.size(); ++k) states[0].counts[k] += states[t].counts[k];
    return std::move(states[0].counts);
  }

  // Removes the pieces whose removal lowers the likelihood least, down to shrinking_factor of the pieces or
  // to `enough` pieces.
  void prune(std::size_t enough) {
    const PieceTrie trie(pieces_, words_.chars.data(), words_.alphabet.size());
    const std::vector<u64> used = used_counts(trie);
    double sum = 0;
    for (u64 n : used) sum += static_cast<double>(n);
    struct Candidate {
      u32 piece;
      double loss;
    };
    std::vector<Candidate> candidates;
    std::vector<Best> best;
    std::vector<u32> others;  // the segmentation of a piece without itself
    for (u32 k = static_cast<u32>(words_.alphabet.size()); k < pieces_.size(); ++k) {
      if (used[k] == 0) continue;
      segment(trie, words_.chars.data() + pieces_[k].begin, pieces_[k].length, k, best, others);
      // The uses of the piece become uses of the others. The loss is the decrease of the log-likelihood.
      const auto n = static_cast<double>(used[k]);
      const double log_sum = std::log(sum + n * static_cast<double>(others.size() - 1));
      double alternative = 0;
      for (u32 piece : others) alternative += std::log(static_cast<double>(used[piece]) + n) - log_sum;
      candidates.push_back({k, n * (std::log(n) - std::log(sum) - alternative)});
    }
    const auto target =
        std::max(enough, static_cast<std::size_t>(static_cast<double>(pieces_.size()) * o_.shrinking_factor));
    const std::size_t room = target - std::min(target, words_.alphabet.size());
    // Ties keep the order of the seeds.
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.loss > b.loss; });
    if (candidates.size() > room) candidates.resize(room);
    std::sort(candidates.begin(), candidates.end(),
              [](const Candidate& a, const Candidate& b) { return a.piece < b.piece; });
    std::vector<Piece> kept(pieces_.begin(),
                            pieces_.begin() + static_cast<std::ptrdiff_t>(words_.alphabet.size()));
    for (const Candidate& c : candidates) kept.push_back(pieces_[c.piece]);
    pieces_ = std::move(kept);
  }

  LearnedUnigram finish() {
    const auto chars = static_cast<std::ptrdiff_t>(words_.alphabet.size());
    std::stable_sort(pieces_.begin() + chars, pieces_.end(),
                     [](const Piece& a, const Piece& b) { return a.score > b.score; });
    if (pieces_.size() > static_cast<std::size_t>(o_.n_pieces))
      pieces_.resize(static_cast<std::size_t>(o_.n_pieces));
    LearnedUnigram out;
    const std::vector<u64> used =
        used_counts(PieceTrie(pieces_, words_.chars.data(), words_.alphabet.size()));
    for (u64 n : used) out.n_tokens += n;
    for (const Piece& p : pieces_) {
      std::string text;
      for (u32 k = 0; k < p.length; ++k) append_utf8(words_.alphabet[words_.chars[p.begin + k] - 1], text);
      // Nine decimals: with so few digits, exact and fast JSON parsers read the same number. A difference of
      // one bit could change which of two segmentations with equal scores is the best.
      const double score = std::round(p.score * 1e9) / 1e9;
      out.pieces.emplace_back(std::move(text), score);
      out.min_score = std::min(out.min_score, score);
    }
    std::sort(out.pieces.begin(), out.pieces.end(), [](const auto& a, const auto& b) {
      return a.second != b.second ? a.second > b.second : a.first < b.first;
    });
    return out;
  }

  const UnigramTraining o_;
  CharWords words_;
  double scale_;
  std::vector<Piece> pieces_;
};

}  // namespace

LearnedUnigram learn_unigram(const WordCounts& words, const UnigramTraining& options,
                             const std::function<void(i64)>& progress) {
  UnigramTraining o = options;
  o.threads = std::max(1, o.threads);
  return UnigramLearner(words, o).learn(progress);
}

}  // namespace redco
