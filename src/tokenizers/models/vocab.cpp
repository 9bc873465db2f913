#include "tokenizers/models/vocab.h"

#include <xxhash.h>

#include <bit>
#include <limits>

#include "base/error.h"

namespace redco {

void Vocab::add(std::string_view token, i64 id, const std::string& where) {
  if (id < 0 || id > kMaxId)
    throw ContentsError("{}: the token '{}' has id {}; expected 0 to {}", where, token.substr(0, 100), id,
                        kMaxId);
  REDCO_CHECK(slots_.empty(), "the vocabulary is finished");
  if (text_.size() + token.size() > std::numeric_limits<u32>::max())
    throw ContentsError("{}: the tokens have more than 4 GiB of text", where);
  entries_.push_back({static_cast<u32>(text_.size()), static_cast<u32>(token.size()), static_cast<i32>(id)});
  text_ += token;
}

void Vocab::finish(const std::string& where, bool repeats) {
  text_.shrink_to_fit();
  entries_.shrink_to_fit();
  i32 largest = -1;
  for (const Entry& e : entries_) largest = std::max(largest, e.id);
  by_id_.assign(static_cast<std::size_t>(largest) + 1, 0);
  slots_.assign(std::bit_ceil(entries_.size() * 2 + 2), 0);
  const std::size_t mask = slots_.size() - 1;
  for (u32 k = 0; k < entries_.size(); ++k) {
    const Entry& e = entries_[k];
    const std::string_view token = text_of(e);
    u32& holder = by_id_[static_cast<std::size_t>(e.id)];
    if (holder != 0)
      throw ContentsError("{}: the tokens '{}' and '{}' both have id {}", where,
                          text_of(entries_[holder - 1]), token, e.id);
    holder = k + 1;
    std::size_t s = XXH3_64bits(token.data(), token.size()) & mask;
    for (; slots_[s] != 0; s = (s + 1) & mask) {
      if (text_of(entries_[slots_[s] - 1]) != token) continue;
      if (!repeats)
        throw ContentsError("{}: the token '{}' appears twice, with ids {} and {}", where,
                            token.substr(0, 100), entries_[slots_[s] - 1].id, e.id);
      break;
    }
    slots_[s] = k + 1;
  }
}

i32 Vocab::find(std::string_view token) const {
  if (slots_.empty()) return -1;
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t s = XXH3_64bits(token.data(), token.size()) & mask; slots_[s] != 0; s = (s + 1) & mask) {
    const Entry& e = entries_[slots_[s] - 1];
    if (text_of(e) == token) return e.id;
  }
  return -1;
}

std::string_view Vocab::token(i32 id) const {
  return has(id) ? text_of(entries_[by_id_[static_cast<std::size_t>(id)] - 1]) : std::string_view();
}

}  // namespace redco
