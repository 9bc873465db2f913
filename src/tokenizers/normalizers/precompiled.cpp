#include "tokenizers/normalizers/precompiled.h"

#include "base/utf8.h"
#include "unicode/hf_chars.h"

namespace redco {
namespace {

constexpr std::ptrdiff_t kWhole = 6;  // bytes from which a cluster is mapped character by character

}  // namespace

Precompiled::Precompiled(Charsmap map) : map_(std::move(map)) {
  std::size_t n = 0;
  for (std::size_t c = 0; c < plain_.size(); ++c) {
    const char text = static_cast<char>(c);
    plain_[c] = !map_.shortest({&text, 1}, n).has_value();
  }
  if (plain_[' ']) cuts_ = plain_['\n'] || map_.shortest("\n", n) == " " ? kCutBoth : kCutSpaces;
}

bool Precompiled::append_rule(std::string_view part, std::string& out) const {
  if (part.size() == 1 && plain_[static_cast<std::size_t>(part[0])]) return false;
  std::size_t n = 0;
  const auto becomes = map_.shortest(part, n);
  if (becomes) out += *becomes;
  return becomes.has_value();
}

std::string Precompiled::normalize(std::string_view text) const {
  std::string out;
  out.reserve(text.size());
  const char* end = text.data() + text.size();
  for (const char* p = text.data(); p < end;) {
    const char* e = end_of_cluster(p, end);
    const std::string_view cluster(p, static_cast<std::size_t>(e - p));
    if (e - p >= kWhole || !append_rule(cluster, out))
      for (const char* q = p; q < e;) {
        const char* start = q;
        next_code_point(q);
        const std::string_view one(start, static_cast<std::size_t>(q - start));
        if (!append_rule(one, out)) out += one;
      }
    p = e;
  }
  return out;
}

bool Precompiled::unchanged(std::string_view text) const {
  for (char c : text)
    if (static_cast<unsigned char>(c) >= 0x80 || !plain_[static_cast<std::size_t>(c)]) return false;
  return true;
}

}  // namespace redco
