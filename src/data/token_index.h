// The tokens of text files, tokenized once and kept in a file that every rank reads.
//
//   std::string path = build_token_index(text, tokenizer, "runs/x/cache");   // on one rank, which tells the
//   others TokenIndex tokens = TokenIndex::open(path);                              // on all
//
// File format (little-endian): a header of 104 bytes (see TokenIndexHeader in the .cpp), then pieces of 65536
// tokens (the last one shorter): their ids as u16 where the tokenizer has at most 65536 of them, else as i32,
// and a bit for each, which is set on the last token of a document. It is published whole or not at all.
//
// Files are read through base/file.h, not mapped: a window costs one pread from the page cache, which all
// ranks of a host share, and a file cut short under a running job is an error with its name instead of a
// SIGBUS.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "data/source_files.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// Raised whenever the same text could give another file.
inline constexpr u32 kTokenIndexVersion = 2;

// What one document is. After each (where it isn't empty) comes the tokenizer's eos token, if it has one.
enum class Documents : std::uint8_t {
  file,       // a whole file, its line breaks included
  line,       // each line without its end; empty lines are none
  paragraph,  // lines up to the next empty one, joined by \n
};

struct TextFiles {
  std::vector<std::string> paths;  // plain or gzipped, UTF-8 unless the tokenizer takes any bytes
  Documents documents = Documents::file;
};

// The path of the index of `text` under `cache_folder`: its name has a hash of the files' paths, sizes and
// times of change, of the tokenizer's fingerprint and eos token, and of kTokenIndexVersion. UsageError for a
// missing file.
std::string token_index_path(const TextFiles& text, const Tokenizer& tokenizer,
                             const std::string& cache_folder);

// Makes that file, unless it is there and whole, and returns its path. Memory is bounded whatever the files'
// size: a document is tokenized in blocks of 1 MiB, cut where the tokenizer says that this changes no id
// (Tokenizer::last_cut). Where it knows of no such place, the block is cut behind its last line break, and a
// text without those every 16 MiB. Lines and paragraphs are at most 64 MiB long. Blocks are tokenized on all
// cores that the process may use; the file is the same for any number. Call it on one rank only.
// Errors: UsageError (missing file); ContentsError (broken gzip, no UTF-8 with file and byte, no token at
// all, a file that changes meanwhile); IoError.
std::string build_token_index(const TextFiles& text, const Tokenizer& tokenizer,
                              const std::string& cache_folder, const BuildProgress& progress = {});

// An open index. Const and thread-safe; movable.
class TokenIndex {
 public:
  // ContentsError for a file that is no whole token index of this version.
  static TokenIndex open(const std::string& path);
  TokenIndex(TokenIndex&&) noexcept;
  TokenIndex& operator=(TokenIndex&&) noexcept;
  ~TokenIndex();

  i64 size() const;         // tokens
  i64 n_documents() const;  // not empty
  i64 text_bytes() const;   // unpacked
  i32 max_id() const;
  const std::string& path() const;

  // Hash of the text itself, 32 hex digits: what a resumed job compares.
  std::string data_hash() const;

  // Entropy of the tokens' frequencies: what a model that knows nothing but them pays, in nats per token and
  // per byte of text.
  double unigram_entropy() const;
  double unigram_entropy_per_byte() const;

  // out[k] = token begin + k. REQUIRES 0 <= begin and begin + out.size() <= size(). ContentsError where the
  // file no longer holds what its header says (an id above max_id()).
  // ends: empty, or as many; 1 on the last token of a document, else 0.
  void read(i64 begin, std::span<i32> out, std::span<std::uint8_t> ends = {}) const;

  // Reads all tokens and compares with the hash in the header; ContentsError if they differ.
  void verify() const;

  // ContentsError where an id is not below `rows`, the rows of the model's embedding.
  void check_vocab(i64 rows) const;

 private:
  struct State;
  explicit TokenIndex(std::unique_ptr<State> state);
  void read_piece(i64 piece, i64 inside, std::span<i32> out, std::span<std::uint8_t> ends) const;
  std::unique_ptr<State> state_;
};

// ContentsError where the tokenizer has ids that an embedding of `rows` rows has no row for.
void check_vocab(const Tokenizer& tokenizer, i64 rows);

}  // namespace redco
