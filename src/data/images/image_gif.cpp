// GIF: the first frame. Source: GIF89a specification (CompuServe, 1990).
#include <algorithm>

#include "base/error.h"
#include "data/images/image_formats.h"

namespace redco {

namespace {

class GifReader {
 public:
  GifReader(std::string_view bytes, const std::string& where) : bytes_(bytes), where_(where) {}

  Image read() {
    at_ = 6;
    Image screen;
    screen.width = number(2);
    screen.height = number(2);
    const std::size_t flags = byte();
    at_ += 2;  // the background's colour, the pixels' aspect
    std::string_view palette = (flags & 128) != 0 ? take(colours(flags)) : std::string_view();
    std::size_t clear = 0;  // the colour around the frame
    for (;;) {
      const std::size_t block = byte();
      if (block == ',') break;
      if (block != '!') fail(block == ';' ? "it has no frame" : "an unknown block");
      const bool control = byte() == 0xF9;
      for (std::string_view part; !(part = take(byte())).empty();)
        if (control && part.size() >= 4 && (part[0] & 1) != 0) clear = static_cast<std::uint8_t>(part[3]);
    }
    const i64 left = number(2), top = number(2), width = number(2), height = number(2);
    const std::size_t frame_flags = byte();
    if ((frame_flags & 128) != 0) palette = take(colours(frame_flags));
    screen.width = std::max(screen.width, left + width);
    screen.height = std::max(screen.height, top + height);
    screen.channels = 3;
    check_size(screen, where_);
    const std::string pixels = unpack(static_cast<std::size_t>(width * height));
    screen.pixels.resize(static_cast<std::size_t>(screen.width * screen.height * 3));
    for (i64 i = 0; i < screen.width * screen.height; ++i)
      colour(palette, clear, &screen.pixels[static_cast<std::size_t>(3 * i)]);
    const std::vector<i64> rows = order(height, (frame_flags & 64) != 0);
    for (i64 y = 0; y < height; ++y)
      for (i64 x = 0; x < width; ++x) {
        const i64 to = (top + rows[static_cast<std::size_t>(y)]) * screen.width + left + x;
        colour(palette, static_cast<std::uint8_t>(pixels[static_cast<std::size_t>(y * width + x)]),
               &screen.pixels[static_cast<std::size_t>(3 * to)]);
      }
    return screen;
  }

 private:
  [[noreturn]] void fail(const char* why) const { throw ContentsError("{}: a broken GIF: {}", where_, why); }
  std::string_view take(std::size_t n) {
    if (at_ > bytes_.size() || n > bytes_.size() - at_) fail("it ends too early");
    at_ += n;
    return bytes_.substr(at_ - n, n);
  }
  std::size_t byte() { return static_cast<std::uint8_t>(take(1)[0]); }
  i64 number(int n) {
    std::size_t v = 0;
    for (int i = 0; i < n; ++i) v |= byte() << (8 * i);
    return static_cast<i64>(v);
  }
  static std::size_t colours(std::size_t flags) { return std::size_t{3} << ((flags & 7) + 1); }

  // Without a palette the numbers are greys.
  static void colour(std::string_view palette, std::size_t i, std::uint8_t* to) {
    for (std::size_t c = 0; c < 3; ++c)
      to[c] = palette.empty()              ? static_cast<std::uint8_t>(i)
              : 3 * i + c < palette.size() ? static_cast<std::uint8_t>(palette[3 * i + c])
                                           : 0;
  }

  // The rows of the screen in the order of the file.
  static std::vector<i64> order(i64 height, bool interlaced) {
    std::vector<i64> rows;
    if (!interlaced)
      for (i64 y = 0; y < height; ++y) rows.push_back(y);
    else
      for (const auto& [first, step] : {std::pair<i64, i64>(0, 8), {4, 8}, {2, 4}, {1, 2}})
        for (i64 y = first; y < height; y += step) rows.push_back(y);
    return rows;
  }

  // n pixels of LZW codes in blocks.
  std::string unpack(std::size_t n) {
    constexpr std::size_t most = 4096;  // codes
    const std::size_t bits = byte();
    if (bits < 1 || bits > 11) fail("the size of its codes");
    const std::size_t clear = std::size_t{1} << bits, end = clear + 1;
    std::vector<std::uint16_t> before(most), length(most, 1);
    std::string last(most, '\0'), out;  // last: the last pixel of a code
    for (std::size_t c = 0; c < clear; ++c) last[c] = static_cast<char>(c);
    out.reserve(n);
    std::size_t used = clear + 2, width = bits + 1, previous = most, held = 0, n_held = 0;
    std::string_view block;
    while (out.size() < n) {
      while (n_held < width) {
        if (block.empty()) block = take(byte());
        if (block.empty()) fail("its pixels end too early");
        held |= static_cast<std::size_t>(static_cast<std::uint8_t>(block[0])) << n_held;
        block.remove_prefix(1);
        n_held += 8;
      }
      const std::size_t code = held & ((std::size_t{1} << width) - 1);
      held >>= width;
      n_held -= width;
      if (code == clear) {
        used = clear + 2;
        width = bits + 1;
        previous = most;
        continue;
      }
      if (code == end) fail("its pixels end too early");
      if (code > used || (code == used && previous == most) || (previous == most && code >= clear))
        fail("a code without a meaning");
      // The new code is the previous one and the first pixel of this one.
      const bool adds = previous != most && used < most;
      if (code == used && !adds) fail("a code without a meaning");
      if (adds) {
        std::size_t first = code == used ? previous : code;
        while (first >= clear) first = before[first];
        before[used] = static_cast<std::uint16_t>(previous);
        length[used] = static_cast<std::uint16_t>(length[previous] + 1);
        last[used++] = static_cast<char>(first);
        if (used == std::size_t{1} << width && width < 12) ++width;
      }
      const std::size_t begin = out.size(), size = length[code];
      out.resize(begin + size);
      for (std::size_t c = code, i = size; i-- > 0; c = before[c]) out[begin + i] = last[c];
      previous = code;
    }
    out.resize(n);
    return out;
  }

  std::string_view bytes_;
  const std::string& where_;
  std::size_t at_ = 0;
};

}  // namespace

bool is_gif(std::string_view bytes) { return bytes.starts_with("GIF87a") || bytes.starts_with("GIF89a"); }

Image decode_gif(std::string_view bytes, const std::string& where) { return GifReader(bytes, where).read(); }

}  // namespace redco
