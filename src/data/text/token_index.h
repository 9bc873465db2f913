// The tokens of text files, tokenized once and stored in a file that every rank reads.
//
//   std::string path = build_token_index(text, tokenizer, "runs/x/cache");   // on one rank
//   TokenIndex tokens = TokenIndex::open(path);                              // on all ranks
//
// File (data/index/index_file.h): pieces of 65536 tokens (the last one shorter): the ids, u16 if the
// tokenizer has at most 65536 of them, else i32, and one bit per token, set on the last token of a document.
//
// Files are read through base/file.h and not mapped: a window costs one pread from the page cache, which all
// ranks of a host share, and a file truncated during a job is an error with its name instead of a SIGBUS.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"
#include "data/index/source_files.h"
#include "tokenizers/tokenizer.h"

namespace redco {

// Raised when the same text could give another file.
inline constexpr u32 kTokenIndexVersion = 5;

// The unit of a document. The tokenizer's eos token, if it has one, follows each document that isn't empty.
// The bos token precedes it if the tokenizer puts it before a text (document_bos).
enum class Documents : std::uint8_t {
  file,       // a whole file with its line breaks
  line,       // a line without its end; empty lines are skipped
  paragraph,  // lines up to the next empty one, joined by \n
};

struct TextFiles {
  std::vector<std::string> paths;  // plain or compressed, UTF-8 unless the tokenizer takes any bytes
  Documents documents = Documents::file;
  bool bos = true;  // false: documents without a bos token
};

// The bos token, if the tokenizer begins the ids of a text with it (Gemma, LLaMA).
std::optional<i32> document_bos(const Tokenizer& tokenizer);

// Builds the index of `text` in `cache_folder`, unless a valid one exists, and returns its path. Its name is
// a hash of the files' contents, of the tokenizer's fingerprint, eos and bos token, and of
// kTokenIndexVersion, so copies of the files have the same index. Memory is bounded for files of any size: a
// document is tokenized in blocks of 1 MiB, cut where the tokenizer guarantees that the cut changes no id
// (Tokenizer::last_cut). Without such a place, a block is cut after its last line break, or, without line
// breaks, every 16 MiB. Lines and paragraphs have at most 64 MiB. All cores of the process tokenize blocks;
// the file does not depend on their number. Call it on one rank only. Errors: UsageError (a missing file, a
// cache folder without the index that can't be written); ContentsError (damaged compressed data, invalid
// UTF-8 with file and byte, no tokens, a file that changes during the build); IoError.
std::string build_token_index(const TextFiles& text, const Tokenizer& tokenizer,
                              const std::string& cache_folder, const BuildProgress& progress = {});

// An open index. Const and thread-safe; movable.
class TokenIndex {
 public:
  // ContentsError if the file is not a complete token index of this version.
  static TokenIndex open(const std::string& path);
  TokenIndex(TokenIndex&&) noexcept;
  TokenIndex& operator=(TokenIndex&&) noexcept;
  ~TokenIndex();

  i64 size() const;         // tokens
  i64 n_documents() const;  // without empty ones
  i64 text_bytes() const;   // unpacked
  i32 max_id() const;
  const std::string& path() const;

  // Hash of the text, 32 hex digits; compared on resume.
  std::string data_hash() const;

  // Entropy of the unigram distribution of the tokens: the loss of a model that knows only their frequencies,
  // in nats per token.
  double unigram_entropy() const;

  // out[k] = token begin + k. REQUIRES 0 <= begin and begin + out.size() <= size(). ContentsError if the file
  // is damaged (an id above max_id()). ends: empty, or of the same size; 1 on the last token of a document,
  // else 0.
  void read(i64 begin, std::span<i32> out, std::span<std::uint8_t> ends = {}) const;

  // Reads all tokens and compares their hash with the header; ContentsError if they differ.
  void verify() const;

  // ContentsError if an id is not below `rows`, the rows of the model's embedding.
  void check_vocab(i64 rows) const;

 private:
  struct State;
  explicit TokenIndex(std::unique_ptr<State> state);
  void read_piece(i64 piece, i64 inside, std::span<i32> out, std::span<std::uint8_t> ends) const;
  std::unique_ptr<State> state_;
};

// ContentsError if the tokenizer has ids outside an embedding of `rows` rows.
void check_vocab(const Tokenizer& tokenizer, i64 rows);

}  // namespace redco
