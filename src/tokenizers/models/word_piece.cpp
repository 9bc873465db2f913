#include "tokenizers/models/word_piece.h"

#include "base/error.h"

namespace redco {
namespace {

[[noreturn]] void no_unk(const std::string& unk, std::string_view piece) {
  throw ContentsError("[tokenizer] '{}' has no token, and the unk_token '{}' is not in the vocabulary",
                      piece.substr(0, 100), unk);
}

}  // namespace

WordPiece::WordPiece(Vocab v, std::string unk, const std::string& prefix, i64 max_chars)
    : TokenModel(std::move(v)),
      unk_text_(std::move(unk)),
      unk_(vocab().find(unk_text_)),
      max_chars_(max_chars) {
  std::vector<std::pair<std::string_view, i32>> all, continuing;
  for (i32 id = 0; id < vocab().size(); ++id) {
    const std::string_view token = vocab().token(id);
    all.emplace_back(token, id);
    if (token.starts_with(prefix)) continuing.emplace_back(token.substr(prefix.size()), id);
  }
  first_ = Trie(std::move(all));
  continuing_ = Trie(std::move(continuing));
}

std::unique_ptr<ModelScratch> WordPiece::make_scratch() const { return std::make_unique<ModelScratch>(); }

void WordPiece::encode(std::string_view piece, ModelScratch&, std::vector<i32>& out) const {
  const std::size_t before = out.size();
  const char* p = piece.data();
  const char* end = p + piece.size();
  bool bad = false;
  if (static_cast<i64>(piece.size()) > max_chars_) {
    i64 chars = 0;
    for (char c : piece) chars += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    bad = chars > max_chars_;
  }
  while (!bad && p < end) {
    const auto [length, id] = (p == piece.data() ? first_ : continuing_).longest(p, end);
    bad = id < 0;
    if (bad) break;
    out.push_back(id);
    p += length;
  }
  if (!bad) return;
  if (unk_ < 0) no_unk(unk_text_, piece);
  out.resize(before);
  out.push_back(unk_);
}

WordLevel::WordLevel(Vocab v, std::string unk)
    : TokenModel(std::move(v)), unk_text_(std::move(unk)), unk_(vocab().find(unk_text_)) {}

std::unique_ptr<ModelScratch> WordLevel::make_scratch() const { return std::make_unique<ModelScratch>(); }

void WordLevel::encode(std::string_view piece, ModelScratch&, std::vector<i32>& out) const {
  if (piece.empty()) return;
  const i32 id = vocab().find(piece);
  if (id < 0 && unk_ < 0) no_unk(unk_text_, piece);
  out.push_back(id < 0 ? unk_ : id);
}

}  // namespace redco
