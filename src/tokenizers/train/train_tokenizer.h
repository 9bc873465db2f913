// Trains a tokenizer on text: `redco tokenizer train`.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

struct TokenizerTraining {
  enum class Model { bpe, unigram };

  std::vector<std::string>
      files;           // plain text or JSON lines, may be compressed, with "text" (see train_text.h)
  std::string output;  // a folder; created if it doesn't exist
  Model model = Model::bpe;
  i64 vocab_size = 32000;
  std::vector<std::string> special = {"<|endoftext|>"};  // get the first ids, in this order
  // bpe: of a pair to be merged; unigram: of a character to become a piece.
  i64 min_frequency = 2;
  std::string split = "gpt2";  // bpe: pre-tokenizer pattern: gpt2, llama3 or qwen
  bool byte_fallback = true;   // unigram: 256 byte tokens, for characters without a piece
  int threads = 0;             // 0: all CPUs
};

struct TrainedTokenizer {
  i32 vocab_size;  // less than requested if the text is too small
  u64 text_bytes, n_words, n_distinct_words;
  double bytes_per_token;  // in the training text
};

// Learns from the files and writes tokenizer.json and tokenizer_config.json, which load_tokenizer() and
// transformers' AutoTokenizer read. The bytes of both files depend on the text and the options only, not on
// the number of threads or the order of the files. The names of special tokens give their roles:
// <|endoftext|>, </s>, <eos>, ... are eos_token, <s>, <bos>, ... are bos_token; also <pad>, <unk>, <mask>,
// [CLS] and [SEP]. With [CLS] and [SEP], the post-processor is BERT's: [CLS] text [SEP], and [CLS] text [SEP]
// pair [SEP].
//
// bpe: byte-level, so decoding restores any text. unigram: like SentencePiece, with U+2581 in place of
// spaces, but without a leading space and without normalization, so decoding restores any text without
// U+2581. Pieces don't contain line breaks. The vocabulary always has <unk>.
//
// UsageError for a missing file, a special token that is empty, repeated or not UTF-8, and a vocab_size that
// is too small for alphabet and special tokens. ContentsError for errors in the files, and for files without
// text. IoError if the output folder can't be written; this is checked before the work starts.
TrainedTokenizer train_tokenizer(const TokenizerTraining& options);

}  // namespace redco
