#include "data/images/tar_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/error.h"
#include "base/words.h"

namespace redco {

namespace {

constexpr i64 kBlock = 512;
constexpr i64 kMaxExtended = i64{1} << 20;  // of a header of names
using Header = std::array<char, kBlock>;

std::string text_in(const Header& h, std::size_t begin, std::size_t n) {
  const std::string_view field(h.data() + begin, n);
  return std::string(field.substr(0, field.find('\0')));
}

// An octal number, or one in base 256 after a byte with the first bit; nullopt for anything else.
std::optional<i64> number_in(const Header& h, std::size_t begin, std::size_t n) {
  i64 value = 0;
  if (static_cast<unsigned char>(h[begin]) == 0x80) {
    for (std::size_t i = begin + 1; i < begin + n; ++i) {
      if (value > (std::numeric_limits<i64>::max() >> 8)) return std::nullopt;
      value = (value << 8) | static_cast<unsigned char>(h[i]);
    }
    return value;
  }
  std::string digits = text_in(h, begin, n);
  std::erase(digits, ' ');
  if (digits.empty()) return 0;
  const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), value, 8);
  if (r.ec != std::errc() || r.ptr != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

// The sum of the bytes, with spaces in place of the sum itself.
i64 sum_of(const Header& h) {
  i64 sum = 0;
  for (std::size_t i = 0; i < h.size(); ++i)
    sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(h[i]);
  return sum;
}

// The value of a key in a pax header, "LENGTH key=value\n"...; nullopt: it has none.
std::optional<std::string> pax_value(const std::string& header, const std::string& key) {
  for (std::size_t at = 0; at < header.size();) {
    std::size_t length = 0;
    const auto r = std::from_chars(header.data() + at, header.data() + header.size(), length);
    if (r.ec != std::errc() || length < 5 || length > header.size() - at) return std::nullopt;
    const std::string_view line(header.data() + at, length - 1);
    const std::size_t space = line.find(' '), equals = line.find('=');
    if (space < equals && equals != line.npos && line.substr(space + 1, equals - space - 1) == key)
      return std::string(line.substr(equals + 1));
    at += length;
  }
  return std::nullopt;
}

std::optional<i64> whole(std::string_view digits) {
  i64 n = 0;
  const auto r = std::from_chars(digits.data(), digits.data() + digits.size(), n);
  if (digits.empty() || r.ec != std::errc() || r.ptr != digits.data() + digits.size() || n < 0)
    return std::nullopt;
  return n;
}

}  // namespace

std::string TarPlace::text() const { return fmt::format("{}@{}+{}:{}", archive, offset, size, name); }

std::optional<TarPlace> TarPlace::of(const std::string& text) {
  const std::size_t end = text.find(".tar@");
  if (end == std::string::npos) return std::nullopt;
  const std::size_t at = end + 4, plus = text.find('+', at), colon = text.find(':', at);
  if (plus == std::string::npos || colon == std::string::npos || plus > colon) return std::nullopt;
  const auto offset = whole(std::string_view(text).substr(at + 1, plus - at - 1)),
             size = whole(std::string_view(text).substr(plus + 1, colon - plus - 1));
  if (!offset || !size) return std::nullopt;
  return TarPlace{text.substr(0, at), *offset, *size, text.substr(colon + 1)};
}

void TarMembers::fail(const std::string& why) const {
  throw ContentsError("{}: byte {}: {}", file_.path(), file_.position(), why);
}

std::size_t TarMembers::fill(char* to, std::size_t n) {
  std::size_t got = 0;
  while (got < n) {
    const std::size_t more = file_.read(to + got, n - got);
    if (more == 0) break;
    got += more;
  }
  return got;
}

void TarMembers::skip(i64 n) {
  std::array<char, 1 << 16> buffer;
  while (n > 0) {
    const auto part = static_cast<std::size_t>(std::min<i64>(n, static_cast<i64>(buffer.size())));
    const std::size_t got = fill(buffer.data(), part);
    if (got < part) fail("the archive ends inside a member. Was the file cut?");
    n -= static_cast<i64>(got);
  }
}

std::string TarMembers::read(i64 max_bytes) {
  if (size_ > max_bytes)
    fail(fmt::format("{} has {}, expected at most {}", excerpt(name_), human_bytes(size_),
                     human_bytes(max_bytes)));
  std::string out;
  // Grows with the data: the size in the header may be wrong.
  while (static_cast<i64>(out.size()) < size_) {
    const std::size_t before = out.size();
    out.resize(
        static_cast<std::size_t>(std::min<i64>(size_, std::max<i64>(2 * static_cast<i64>(before), 1 << 16))));
    if (fill(out.data() + before, out.size() - before) < out.size() - before)
      fail("the archive ends inside a member. Was the file cut?");
  }
  left_ -= size_;
  return out;
}

bool TarMembers::next() {
  std::optional<std::string> long_name;
  i64 long_size = -1;  // of a pax header; -1: none
  for (;;) {
    skip(left_);
    left_ = 0;
    Header h{};
    const std::size_t got = fill(h.data(), h.size());
    if (got == 0 || (got == h.size() && std::ranges::all_of(h, [](char c) { return c == 0; }))) return false;
    const auto sum = number_in(h, 148, 8);
    if (got < h.size() || !sum || *sum != sum_of(h)) fail("no header of a tar archive. Is the file damaged?");
    const auto size = number_in(h, 124, 12);
    if (!size || *size > (i64{1} << 50)) fail("the size of a member is not a number");
    size_ = *size;
    name_ = text_in(h, 0, 100);
    if (text_in(h, 257, 5) == "ustar")
      if (const std::string prefix = text_in(h, 345, 155); !prefix.empty() && h[262] == '\0')
        name_ = prefix + "/" + name_;
    const char type = h[156];
    const auto padded = [](i64 n) { return (n + kBlock - 1) / kBlock * kBlock; };
    left_ = padded(size_);
    if (type == 'x' || type == 'L') {
      const std::string header = read(kMaxExtended);
      if (type == 'L') {
        long_name = header.substr(0, header.find('\0'));
        continue;
      }
      if (auto path = pax_value(header, "path")) long_name = std::move(path);
      if (const auto digits = pax_value(header, "size")) {
        long_size = whole(*digits).value_or(-1);
        if (long_size < 0 || long_size > (i64{1} << 50)) fail("the size of a member is not a number");
      }
      continue;
    }
    if (long_size >= 0) size_ = long_size, left_ = padded(size_);
    if (long_name) name_ = *long_name;
    long_size = -1;
    long_name.reset();
    if (type != '0' && type != '\0' && type != '7') continue;
    if (name_.starts_with("./")) name_.erase(0, 2);
    offset_ = static_cast<i64>(file_.position());
    return true;
  }
}

}  // namespace redco
