// Makes a tokenizer out of text: what `redco tokenizer train` does.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

struct TokenizerTraining {
  enum class Model { bpe, unigram };

  std::vector<std::string> files;  // plain text, .gz, or JSON lines with "text" (see train_text.h)
  std::string output;              // a folder, made if it doesn't exist
  Model model = Model::bpe;
  i64 vocab_size = 32000;
  std::vector<std::string> special = {"<|endoftext|>"};  // the first ids, in this order
  // bpe: pairs seen less often aren't merged; unigram: characters seen less often are no pieces.
  i64 min_frequency = 2;
  std::string split = "gpt2";  // bpe: how text is split before it is merged: gpt2, llama3 or qwen
  bool byte_fallback = true;   // unigram: 256 tokens for the bytes of characters that are no pieces
  int threads = 0;             // 0: all
};

struct TrainedTokenizer {
  i32 vocab_size;  // less than asked for where the text has no more to learn
  u64 text_bytes, n_words, n_distinct_words;
  double bytes_per_token;  // of the training text
};

// Learns from the files and writes tokenizer.json and tokenizer_config.json, which load_tokenizer() and
// transformers' AutoTokenizer read alike. The same files and options give the same bytes, whatever the number
// of threads and the order of the files. Special tokens get roles by their names: <|endoftext|>, </s>, <eos>,
// ... end a text, <s>, <bos>, ... begin one, and so on for <pad>, <unk>, <mask>, [CLS] and [SEP]. With these
// two, texts are [CLS] text [SEP], and pairs [CLS] text [SEP] pair [SEP], as BERT has them.
//
// bpe: byte-level, any text comes back as it was. unigram: as SentencePiece has it, spaces being U+2581, but
// without a space in front of the text and without normalization, so that text comes back as it was, too, but
// for U+2581 itself; pieces don't cross line breaks. Always has <unk>.
//
// Errors: UsageError for a missing file, special tokens that are empty, twice or not UTF-8, or a vocab_size
// without room for alphabet and special tokens; ContentsError for what is in the files, or for no text in
// them; IoError for a folder that cannot be written, before any work is done.
TrainedTokenizer train_tokenizer(const TokenizerTraining& options);

}  // namespace redco
