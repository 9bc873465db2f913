#include "tokenizers/models/unigram.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"
#include "tokenizers/models/piece_cache.h"

namespace redco {
namespace {

constexpr double kUnknownPenalty = 10;

}  // namespace

struct Unigram::Scratch : ModelScratch {
  struct Best {  // the best segmentation that ends at one byte of the piece
    double score;
    i32 from;  // start of its last token; -1: none yet
    i32 id;
  };
  PieceCache cache;
  std::vector<Best> best;
  std::vector<std::pair<i32, i32>> path;  // start and id of each token, from the last to the first
  std::vector<i32> ids;
};

Unigram::Unigram(Vocab v, std::vector<double> scores, std::optional<i32> unk, bool byte_fallback)
    : TokenModel(std::move(v)),
      scores_(std::move(scores)),
      unk_(unk.value_or(-1)),
      byte_fallback_(byte_fallback) {
  REDCO_CHECK(scores_.size() == static_cast<std::size_t>(vocab().size()) && unk_ < vocab().size(),
              "{} scores for {} tokens", scores_.size(), vocab().size());
  double lowest = std::numeric_limits<double>::infinity();
  for (double s : scores_) lowest = std::min(lowest, s);
  unk_score_ = lowest - kUnknownPenalty;
  std::vector<std::pair<std::string_view, i32>> keys;
  keys.reserve(scores_.size());
  for (i32 id = 0; id < vocab().size(); ++id) keys.emplace_back(vocab().token(id), id);
  trie_ = Trie(std::move(keys));
  for (unsigned b = 0; b < 256; ++b) fallback_[b] = vocab().find(fmt::format("<0x{:02X}>", b));
}

std::unique_ptr<ModelScratch> Unigram::make_scratch() const { return std::make_unique<Scratch>(); }

// Calls emit(text, id) for each token of the best segmentation. A run of unknown characters is one token with
// id -1.
template <class Emit>
void Unigram::best_path(std::string_view piece, Scratch& s, Emit&& emit) const {
  const std::size_t n = piece.size();
  if (n > std::numeric_limits<i32>::max() / 4)
    throw ContentsError(
        "[tokenizer] the pre-tokenizer gives a piece of {} bytes; at most 512 MiB are supported", n);
  s.best.assign(n + 1, {0, -1, 0});
  const char* begin = piece.data();
  const char* end = begin + n;
  for (const char* p = begin; p < end;) {
    const auto at = static_cast<std::size_t>(p - begin);
    const double so_far = s.best[at].score;
    // A later start replaces the best segmentation only if its score is strictly higher.
    auto reach = [&](std::size_t length, double score, i32 id) {
      Scratch::Best& b = s.best[at + length];
      if (b.from < 0 || score + so_far > b.score) b = {score + so_far, static_cast<i32>(at), id};
    };
    const char* start = p;
    next_code_point(p);
    const auto one = static_cast<std::size_t>(p - start);  // bytes of this character
    bool single = false;                                   // whether this character is a token
    trie_.prefixes(start, end, [&](std::size_t length, i32 id) {
      reach(length, scores_[static_cast<std::size_t>(id)], id);
      single |= length == one;
    });
    if (single) continue;
    if (unk_ < 0)
      throw ContentsError("[tokenizer] no token has '{}', and the model's unk_id is null",
                          std::string_view(start, one));
    reach(one, unk_score_, unk_);
  }
  s.path.clear();
  for (auto at = static_cast<i32>(n); at > 0; at = s.best[static_cast<std::size_t>(at)].from)
    s.path.emplace_back(s.best[static_cast<std::size_t>(at)].from, s.best[static_cast<std::size_t>(at)].id);
  for (std::size_t k = s.path.size(); k-- > 0;) {
    const auto from = static_cast<std::size_t>(s.path[k].first);
    const i32 id = s.path[k].second;
    if (id == unk_)
      while (k > 0 && s.path[k - 1].second == unk_) --k;
    const std::size_t to = k > 0 ? static_cast<std::size_t>(s.path[k - 1].first) : n;
    emit(piece.substr(from, to - from), id == unk_ ? -1 : id);
  }
}

void Unigram::encode(std::string_view piece, ModelScratch& scratch, std::vector<i32>& out) const {
  if (piece.empty()) return;
  auto& s = static_cast<Scratch&>(scratch);
  const bool cached = piece.size() <= PieceCache::kMaxPiece;
  PieceCache::Key key{};
  if (cached) {
    key = PieceCache::key_of(piece);
    const auto ids = s.cache.find(piece, key);
    if (ids.data() != nullptr) {
      out.insert(out.end(), ids.begin(), ids.end());
      return;
    }
  }
  s.ids.clear();
  best_path(piece, s, [&](std::string_view text, i32 id) {
    // A run of unknown characters can be a token that is not part of the best segmentation.
    if (id < 0) id = vocab().find(text);
    if (id >= 0) {
      s.ids.push_back(id);
    } else if (byte_fallback_ && std::all_of(text.begin(), text.end(), [&](char b) {
                 return fallback_[static_cast<unsigned char>(b)] >= 0;
               })) {
      for (char b : text) s.ids.push_back(fallback_[static_cast<unsigned char>(b)]);
    } else {
      s.ids.push_back(unk_);
    }
  });
  if (cached) s.cache.insert(piece, key, s.ids);
  out.insert(out.end(), s.ids.begin(), s.ids.end());
}

void Unigram::tokenize(std::string_view piece, ModelScratch& scratch, std::vector<i32>& ids,
                       std::vector<std::string>& tokens) const {
  const std::size_t before = ids.size();
  encode(piece, scratch, ids);
  std::size_t k = before;
  best_path(piece, static_cast<Scratch&>(scratch), [&](std::string_view text, i32 id) {
    if (id < 0 && ids[k] == unk_) {
      tokens.emplace_back(text);
      ++k;
      return;
    }
    // One token per byte of a fallback, or one token.
    const std::size_t n = id < 0 && vocab().find(text) < 0 ? text.size() : 1;
    for (std::size_t end = k + n; k < end; ++k) tokens.emplace_back(vocab().token(ids[k]));
  });
}

}  // namespace redco
