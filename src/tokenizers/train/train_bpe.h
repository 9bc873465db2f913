// Learns byte-pair encoding (Sennrich et al. 2016) on bytes: the most frequent pair of neighbours becomes a
// token, again and again.
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
  i64 min_frequency = 2;             // pairs seen less often are not merged
  std::vector<std::string> special;  // the first ids, in this order
};

// Tokens are in the byte alphabet (byte_level.h).
struct LearnedBpe {
  std::vector<std::string> tokens;  // by id: special ones, the 256 bytes, results of merges
  std::vector<std::pair<std::string, std::string>> merges;  // lowest rank first
  u64 n_tokens = 0;                                         // that the words became
};

// The merges are those of Hugging Face's BpeTrainer with the whole byte alphabet: of pairs with equal counts,
// the one with the lower ids wins. It stops at vocab_size tokens, or earlier when no pair is frequent enough.
// progress(tokens so far) is called now and then. Takes time in proportion to the distinct words, and one
// thread. UsageError where vocab_size has no room for the special tokens and the alphabet.
LearnedBpe learn_bpe(const WordCounts& words, const BpeTraining& options,
                     const std::function<void(i64)>& progress = {});

}  // namespace redco
