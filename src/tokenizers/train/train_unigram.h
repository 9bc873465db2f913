// Learns a Unigram vocabulary (Kudo 2018) like SentencePiece and Hugging Face's UnigramTrainer. It starts
// with many frequent substrings and estimates their probabilities by expectation maximization (EM). Then it
// repeatedly removes the pieces whose removal lowers the text's likelihood least.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "tokenizers/train/train_text.h"

namespace redco {

struct UnigramTraining {
  i64 n_pieces = 8000;             // fewer if the text is too small
  i64 min_frequency = 1;           // of a character in the alphabet; others become unknown, or bytes
  std::string always;              // characters that always become pieces
  u32 max_piece_length = 16;       // characters
  i64 seed_size = 1'000'000;       // number of seed pieces
  double shrinking_factor = 0.75;  // fraction of the pieces that each round keeps
  int n_sub_iterations = 2;        // EM iterations per round
  int threads = 1;
};

struct LearnedUnigram {
  std::vector<std::pair<std::string, double>> pieces;  // with log probabilities, best first, ties by bytes
  double min_score = 0;
  u64 n_tokens = 0;  // of the encoded training text
};

// Each character with min_frequency becomes a piece. Calls progress(number of pieces) each round. The result
// doesn't depend on the number of threads: expected counts are summed as integers. UsageError if n_pieces is
// less than the number of characters; ContentsError: no characters.
LearnedUnigram learn_unigram(const WordCounts& words, const UnigramTraining& options,
                             const std::function<void(i64)>& progress = {});

}  // namespace redco
