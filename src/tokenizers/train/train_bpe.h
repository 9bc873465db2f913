// Learns byte-level byte-pair encoding (Sennrich et al. 2016): repeatedly merges the most frequent pair of
// adjacent tokens into a new token.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/types.h"
#include "tokenizers/train/train_text.h"

namespace redco {

struct BpeTraining {
  i32 vocab_size = 32000;
  i64 min_frequency = 2;             // of a pair to be merged
  std::vector<std::string> special;  // get the first ids, in this order
};

// The texts of tokens are in the byte alphabet (byte_level.h).
struct LearnedBpe {
  std::vector<std::string> tokens;  // by id: special tokens, the 256 bytes, results of merges
  std::vector<std::pair<std::string, std::string>> merges;  // lowest rank first
  u64 n_tokens = 0;                                         // of the encoded training text
};

// The merges are those of Hugging Face's BpeTrainer with the whole byte alphabet: of pairs with equal counts,
// the pair with the lower ids wins. Stops at vocab_size tokens, or when no pair has min_frequency. Calls
// progress(number of tokens) from time to time. Uses one thread; the time is proportional to the size of the
// distinct words. UsageError if vocab_size is less than the special tokens and the alphabet need.
LearnedBpe learn_bpe(const WordCounts& words, const BpeTraining& options,
                     const std::function<void(i64)>& progress = {});

}  // namespace redco
