#include "data/text/lm_windows.h"

#include "base/error.h"
#include "base/words.h"

namespace redco {

LmWindows::LmWindows(const TokenIndex& tokens, i64 max_length) : tokens_(&tokens), max_length_(max_length) {
  if (max_length < 1) throw UsageError("[data] max_length={}, expected at least 1", max_length);
  if (tokens.size() < 2)
    throw ContentsError("{}: the data have {}, but a window needs at least two", tokens.path(),
                        counted(tokens.size(), "token"));
  const i64 targets = tokens.size() - 1;
  n_ = ceil_div(targets, max_length);
}

i64 LmWindows::n_targets(i64 w) const {
  REDCO_CHECK(w >= 0 && w < n_, "window {} of {}", w, n_);
  return std::min(max_length_, n_targets() - w * max_length_);
}

void LmWindows::read(i64 w, std::span<i32> out, std::span<std::uint8_t> ends) const {
  REDCO_CHECK(static_cast<i64>(out.size()) == length(w), "{} places for {} tokens", out.size(), length(w));
  tokens_->read(w * max_length_, out, ends);
}

std::vector<i32> LmWindows::read(i64 w) const {
  std::vector<i32> out(static_cast<std::size_t>(length(w)));
  read(w, out);
  return out;
}

}  // namespace redco
