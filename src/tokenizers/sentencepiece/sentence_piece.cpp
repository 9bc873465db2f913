#include "tokenizers/sentencepiece/sentence_piece.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>

#include "base/error.h"
#include "base/utf8.h"

namespace redco {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581, the replacement of a space
constexpr float kUnkPenalty = 10;

std::size_t character(std::string_view text) {
  const char* p = text.data();
  next_code_point(p);
  return static_cast<std::size_t>(p - text.data());
}

// As in sentencepiece, sums are floats; a comparison with a user-defined symbol is in double.
class SpUnigram : public SpTokens {
 public:
  SpUnigram(const SpModel& model, Vocab all, Vocab normal, Vocab reserved)
      : SpTokens(model, std::move(all), std::move(normal), std::move(reserved)) {
    float lowest = std::numeric_limits<float>::max();
    highest_ = std::numeric_limits<float>::min();
    std::vector<std::pair<std::string_view, i32>> keys;
    for (std::size_t id = 0; id < model.pieces.size(); ++id) {
      const SpModel::Piece& p = model.pieces[id];
      if (p.kind == SpModel::Kind::normal) {
        lowest = std::min(lowest, p.score);
        highest_ = std::max(highest_, p.score);
      }
      if (p.kind == SpModel::Kind::normal || p.kind == SpModel::Kind::user_defined)
        keys.emplace_back(vocab().token(static_cast<i32>(id)), static_cast<i32>(id));
    }
    unk_score_ = lowest - kUnkPenalty;
    trie_ = Trie(std::move(keys));
  }

 protected:
  std::vector<Part> cut(std::string_view text) const override {
    struct Best {
      float score = 0;
      i32 id = -1;
      i64 from = -1;
    };
    std::vector<Best> best(text.size() + 1);
    const char* end = text.data() + text.size();
    for (std::size_t at = 0; at < text.size();) {
      const float so_far = best[at].score;
      auto reach = [&](std::size_t to, double score, i32 id) {
        if (best[to].from < 0 || score > static_cast<double>(best[to].score))
          best[to] = {static_cast<float>(score), id, static_cast<i64>(at)};
      };
      const std::size_t one = character(text.substr(at));
      bool single = false;
      trie_.prefixes(text.data() + at, end, [&](std::size_t length, i32 id) {
        const double own = kind(id) == SpModel::Kind::user_defined
                               ? static_cast<double>(static_cast<float>(length) * highest_) - 0.1
                               : static_cast<double>(score(id));
        reach(at + length, own + static_cast<double>(so_far), id);
        single |= length == one;
      });
      if (!single) reach(at + one, static_cast<double>(unk_score_ + so_far), unk_);
      at += one;
    }
    std::vector<Part> parts;
    for (std::size_t to = text.size(); to > 0;) {
      const auto from = static_cast<std::size_t>(best[to].from);
      parts.push_back({text.substr(from, to - from), best[to].id});
      to = from;
    }
    std::reverse(parts.begin(), parts.end());
    return parts;
  }

 private:
  Trie trie_;
  float highest_, unk_score_;
};

// Merges the adjacent symbols whose merged piece has the highest score, the leftmost of equals, until there
// is none. Unused pieces are merged too, and split again at the end.
class SpBpe : public SpTokens {
 public:
  SpBpe(const SpModel& model, Vocab all, Vocab normal, Vocab reserved)
      : SpTokens(model, std::move(all), std::move(normal), std::move(reserved)) {
    std::vector<std::pair<std::string_view, i32>> keys;
    for (std::size_t id = 0; id < model.pieces.size(); ++id)
      if (model.pieces[id].kind == SpModel::Kind::user_defined)
        keys.emplace_back(vocab().token(static_cast<i32>(id)), static_cast<i32>(id));
    symbols_ = Trie(std::move(keys));
  }

 protected:
  std::vector<Part> cut(std::string_view text) const override {
    struct Symbol {
      std::string_view text;  // empty: merged into its left neighbour
      i64 previous, next;
      bool frozen;
    };
    struct Pair {
      float score;
      i64 left, right;
      std::size_t size;
      bool operator<(const Pair& o) const { return score < o.score || (score == o.score && left > o.left); }
    };
    std::vector<Symbol> symbols;
    const char* end = text.data() + text.size();
    for (std::size_t at = 0; at < text.size();) {
      std::size_t n = symbols_.longest(text.data() + at, end).first;
      const bool frozen = n > 0;
      if (!frozen) n = character(text.substr(at));
      const auto k = static_cast<i64>(symbols.size());
      at += n;
      symbols.push_back({text.substr(at - n, n), k - 1, at == text.size() ? -1 : k + 1, frozen});
    }
    auto symbol = [&](i64 k) -> Symbol& { return symbols[static_cast<std::size_t>(k)]; };
    std::priority_queue<Pair> agenda;
    std::map<std::string_view, std::size_t> unused;  // unused piece -> the length of its left side
    auto consider = [&](i64 left, i64 right) {
      if (left < 0 || right < 0 || symbol(left).frozen || symbol(right).frozen) return;
      const std::string_view joined(symbol(left).text.data(),
                                    symbol(left).text.size() + symbol(right).text.size());
      const i32 id = normal_.find(joined);
      if (id < 0) return;
      agenda.push({score(id), left, right, joined.size()});
      if (kind(id) == SpModel::Kind::unused) unused[joined] = symbol(left).text.size();
    };
    for (i64 k = 1; k < static_cast<i64>(symbols.size()); ++k) consider(k - 1, k);
    while (!agenda.empty()) {
      const Pair top = agenda.top();
      agenda.pop();
      Symbol& left = symbol(top.left);
      Symbol& right = symbol(top.right);
      if (left.text.empty() || right.text.empty() || left.text.size() + right.text.size() != top.size)
        continue;
      left.text = {left.text.data(), top.size};
      left.next = right.next;
      if (right.next >= 0) symbol(right.next).previous = top.left;
      right.text = {};
      consider(left.previous, top.left);
      consider(top.left, left.next);
    }
    std::vector<Part> parts;
    std::vector<std::string_view> open;
    for (i64 k = symbols.empty() ? -1 : 0; k >= 0; k = symbol(k).next) {
      open.push_back(symbol(k).text);
      while (!open.empty()) {
        const std::string_view piece = open.back();
        open.pop_back();
        const i32 id = id_of(piece);
        const auto split = kind(id) == SpModel::Kind::unused ? unused.find(piece) : unused.end();
        if (split == unused.end()) {
          parts.push_back({piece, id});
        } else {
          open.push_back(piece.substr(split->second));
          open.push_back(piece.substr(0, split->second));
        }
      }
    }
    return parts;
  }

 private:
  Trie symbols_;  // user-defined symbols, which are never merged
};

class SpDecoder : public Decoder {
 public:
  SpDecoder(const SpModel& m, const SpTokens& tokens)
      : tokens_(tokens),
        unk_surface_(m.unk_surface),
        extra_(m.remove_extra_whitespaces),
        dummy_(m.add_dummy_prefix) {
    for (const SpModel::Piece& p : m.pieces) kinds_.push_back(p.kind);
  }
  std::vector<std::string> decode(std::vector<std::string> tokens) const override {
    std::string text, bytes;
    auto flush = [&] {
      // Ill-formed bytes one by one, as in sentencepiece.
      for (std::size_t at = 0; at < bytes.size();) {
        std::size_t n = std::min<std::size_t>(4, bytes.size() - at);
        while (n > 0 &&
               !(find_invalid_utf8(std::string_view(bytes).substr(at, n)) == std::string_view::npos &&
                 character(std::string_view(bytes).substr(at)) == n))
          --n;
        n == 0 ? text += "\xEF\xBF\xBD" : text.append(bytes, at, n);
        at += std::max<std::size_t>(n, 1);
      }
      bytes.clear();
    };
    bool at_begin = true, begun = false;  // before the first token; the leading space was dropped
    for (const std::string& token : tokens) {
      const i32 id = tokens_.id_of(token);
      const auto kind = kinds_[static_cast<std::size_t>(id)];
      if (kind == SpModel::Kind::byte) {
        bytes += static_cast<char>(std::stoi(token.substr(3, 2), nullptr, 16));
        continue;
      }
      flush();
      if (begun || !text.empty()) at_begin = false;
      begun = false;
      if (kind == SpModel::Kind::control) continue;
      if (kind == SpModel::Kind::unknown) {
        text += tokens_.vocab().token(id) == token ? unk_surface_ : token;
        continue;
      }
      std::string_view piece = token;
      if (at_begin && (dummy_ || extra_) && piece.starts_with(kMark)) {
        piece.remove_prefix(kMark.size());
        begun = !extra_;
      }
      for (std::size_t k = 0; k < piece.size();) {
        const bool mark = piece.substr(k).starts_with(kMark);
        text += mark ? ' ' : piece[k];
        k += mark ? kMark.size() : 1;
      }
    }
    flush();
    return {text};
  }

 private:
  const SpTokens& tokens_;
  std::vector<SpModel::Kind> kinds_;
  std::string unk_surface_;
  bool extra_, dummy_;
};

}  // namespace

SpNormalizer::SpNormalizer(const SpModel& m, const std::string& where)
    : dummy_(m.add_dummy_prefix),
      extra_(m.remove_extra_whitespaces),
      suffix_(m.treat_whitespace_as_suffix),
      space_(m.escape_whitespaces ? kMark : " ") {
  if (!m.charsmap.empty())
    map_ = std::make_unique<Charsmap>(m.charsmap, where + ": normalizer_spec.precompiled_charsmap");
  for (const SpModel::Piece& p : m.pieces)
    if (p.kind == SpModel::Kind::user_defined) symbols_.push_back(p.text);
  std::vector<std::pair<std::string_view, i32>> keys;
  for (const std::string& s : symbols_) keys.emplace_back(s, 0);
  symbol_trie_ = Trie(std::move(keys));
}

// The replacement of the first symbol, rule match or character of `text`; `length` gets its bytes.
std::string_view SpNormalizer::prefix(std::string_view text, std::size_t& length) const {
  length = symbol_trie_.longest(text.data(), text.data() + text.size()).first;
  if (length > 0) return text.substr(0, length);
  if (map_ != nullptr)
    if (const auto becomes = map_->longest(text, length)) return *becomes;
  length = character(text);
  return text.substr(0, length);
}

std::string SpNormalizer::normalize(std::string_view text) const {
  std::size_t n = 0;
  while (extra_ && !text.empty() && prefix(text, n) == " ") text.remove_prefix(n);
  if (text.empty()) return {};
  std::string out;
  out.reserve(text.size() + text.size() / 2);
  if (dummy_ && !suffix_) out += space_;
  bool after_space = extra_;
  while (!text.empty()) {
    std::string_view becomes = prefix(text, n);
    while (after_space && becomes.starts_with(' ')) becomes.remove_prefix(1);
    for (char c : becomes) c == ' ' ? static_cast<void>(out += space_) : out.push_back(c);
    if (!becomes.empty()) after_space = extra_ && becomes.ends_with(' ');
    text.remove_prefix(n);
  }
  while (extra_ && out.ends_with(space_)) out.resize(out.size() - space_.size());
  if (dummy_ && suffix_) out += space_;
  return out;
}

SpTokens::SpTokens(const SpModel& model, Vocab all, Vocab normal, Vocab reserved)
    : TokenModel(std::move(all)),
      normal_(std::move(normal)),
      reserved_(std::move(reserved)),
      byte_fallback_(model.byte_fallback) {
  for (const SpModel::Piece& p : model.pieces) {
    if (p.kind == SpModel::Kind::unknown) unk_ = static_cast<i32>(kinds_.size());
    kinds_.push_back(p.kind);
    scores_.push_back(p.score);
  }
  for (unsigned b = 0; b < 256; ++b) bytes_[b] = id_of(fmt::format("<0x{:02X}>", b));
}

i32 SpTokens::id_of(std::string_view text) const {
  i32 id = reserved_.find(text);
  if (id < 0) id = normal_.find(text);
  return id < 0 ? unk_ : id;
}

bool SpTokens::is_control(i32 id) const {
  return id >= 0 && id < static_cast<i32>(kinds_.size()) &&
         (kind(id) == SpModel::Kind::control || kind(id) == SpModel::Kind::unknown);
}

template <class Emit>
void SpTokens::emit_parts(std::string_view text, Emit&& emit) const {
  const std::vector<Part> parts = cut(text);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (kind(parts[k].id) != SpModel::Kind::unknown) {
      emit(parts[k].text, parts[k].id, true);
    } else if (byte_fallback_) {
      for (char b : parts[k].text) emit({}, bytes_[static_cast<unsigned char>(b)], true);
    } else {
      std::size_t n = parts[k].text.size();
      const std::size_t first = k;
      while (k + 1 < parts.size() && kind(parts[k + 1].id) == SpModel::Kind::unknown)
        n += parts[++k].text.size();
      emit(std::string_view(parts[first].text.data(), n), parts[first].id, false);
    }
  }
}

void SpTokens::encode(std::string_view piece, ModelScratch&, std::vector<i32>& out) const {
  emit_parts(piece, [&](std::string_view, i32 id, bool) { out.push_back(id); });
}

void SpTokens::tokenize(std::string_view piece, ModelScratch&, std::vector<i32>& ids,
                        std::vector<std::string>& tokens) const {
  emit_parts(piece, [&](std::string_view text, i32 id, bool known) {
    ids.push_back(id);
    tokens.emplace_back(known ? vocab().token(id) : text);
  });
}

std::unique_ptr<SpTokens> make_sp_tokens(const SpModel& model, const std::string& where) {
  Vocab all, normal, reserved;
  for (std::size_t id = 0; id < model.pieces.size(); ++id) {
    const SpModel::Piece& p = model.pieces[id];
    all.add(p.text, static_cast<i64>(id), where);
    (SpModel::is_normal(p.kind) ? normal : reserved).add(p.text, static_cast<i64>(id), where);
  }
  all.finish(where, true);  // repeats: a control symbol may have the text of a normal piece
  normal.finish(where);
  reserved.finish(where);
  if (model.algorithm == SpModel::Algorithm::bpe)
    return std::make_unique<SpBpe>(model, std::move(all), std::move(normal), std::move(reserved));
  return std::make_unique<SpUnigram>(model, std::move(all), std::move(normal), std::move(reserved));
}

std::unique_ptr<Decoder> make_sp_decoder(const SpModel& model, const SpTokens& tokens) {
  return std::make_unique<SpDecoder>(model, tokens);
}

}  // namespace redco
