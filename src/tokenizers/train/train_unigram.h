// Learns a Unigram vocabulary (Kudo 2018, as SentencePiece and Hugging Face's UnigramTrainer do it): many
// frequent substrings at first, their probabilities by expectation maximization, and the pieces that the
// text's likelihood needs least are taken away until few enough are left.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "tokenizers/train/train_text.h"

namespace redco {

struct UnigramTraining {
  i64 n_pieces = 8000;             // that are wanted; fewer where the text doesn't have them
  i64 min_frequency = 1;           // characters seen less often are left out: they become unknown, or bytes
  std::string always;              // characters that are pieces in any case
  u32 max_piece_length = 16;       // characters
  i64 seed_size = 1'000'000;       // pieces to start from
  double shrinking_factor = 0.75;  // what of the pieces stays, each round
  int n_sub_iterations = 2;        // of expectation maximization, each round
  int threads = 1;
};

struct LearnedUnigram {
  std::vector<std::pair<std::string, double>> pieces;  // with log probabilities, best first, ties by bytes
  double min_score = 0;
  u64 n_tokens = 0;  // that the words became
};

// Every character of the text that is frequent enough is a piece. progress(pieces left) is called each round.
// The result is the same for any number of threads: expected counts are summed as integers. Errors:
// UsageError where n_pieces has no room for the characters; ContentsError where there are none.
LearnedUnigram learn_unigram(const WordCounts& words, const UnigramTraining& options,
                             const std::function<void(i64)>& progress = {});

}  // namespace redco
