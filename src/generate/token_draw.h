// Draws tokens from scores that are cut over the vocabulary: temperature, top-k, top-p and min-p, exactly, as
// transformers' warpers in this order. No rank sees the scores of another part.
//
// A threshold of a row (the k-th score, or the last score of the top-p mass) is searched in buckets of
// scores: the ranks exchange the buckets' weights, and the bucket that holds the threshold is divided again,
// until its tokens have one score. A draw is a place in the cumulative weights, ids ascending: one rank has
// it, and finds the token. Rows run on the kernels' threads. Every rank computes the same from the exchanged
// numbers, with sums and products only, so that CPU types don't matter.
//
// Scores: rows R, tokens of this part n. T is float or double.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "generate/generation_settings.h"
#include "generate/local_scores.h"
#include "kernels/sampling.h"

namespace redco {

template <class T>
class TokenDraw {
 public:
  // rows: [n] each, of tokens [first, first + n); scores of tokens that can't be drawn become -inf. Every
  // rank of the group makes the same calls. cut: each rank has another part of the vocabulary.
  TokenDraw(Group& group, bool cut, std::vector<std::span<T>> rows, i64 first, const GenerationSettings& s);

  // The token at places[r] in [0, 1) of row r's cumulative probabilities; -1: no score is above -inf.
  std::vector<i32> draw(std::span<const double> places) const;
  // The probabilities of this part's tokens in a row, 0 for tokens that can't be drawn.
  std::vector<double> probabilities(std::size_t row) const;

 private:
  struct Row {
    std::span<T> scores;
    kernels::ScoreRange<T> range{-std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()};
    kernels::ScoreWeights<T> of{};  // of.cut: the lowest score that can be drawn
    std::vector<T> few;             // after top-k: the scores that are left, and their indices in `scores`
    std::vector<i32> ids;
    std::vector<double> sums;  // of the weights of kChunk scores each
    double total = 0;          // of all parts
    double before = 0, mine = 0;
    bool empty = false;
    std::span<const T> searched() const { return few.empty() ? std::span<const T>(scores) : few; }
  };
  struct Search;

  template <class F>
  void each_row(F&& f);
  double temperature() const { return s_.draws() ? s_.temperature : 1.0; }
  void find_tops();
  void find_threshold(bool by_mass);
  void keep_few();
  void sum_parts();
  i32 token_at(const Row& r, double target) const;

  Group& group_;
  bool cut_;
  i64 first_;
  const GenerationSettings& s_;
  std::vector<Row> rows_;
};

}  // namespace redco
