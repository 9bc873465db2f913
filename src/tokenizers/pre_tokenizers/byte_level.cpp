#include "tokenizers/pre_tokenizers/byte_level.h"

#include <array>

#include "base/utf8.h"

namespace redco {
namespace {

// Printable bytes map to themselves, the other 68 bytes in order to U+0100 and up.
struct Tables {
  std::array<char32_t, 256> chars;
  std::array<short, 0x144> bytes;
  std::array<std::string, 256> utf8;
  Tables() {
    bytes.fill(-1);
    char32_t next = 0x100;
    for (unsigned b = 0; b < 256; ++b) {
      const bool printable = (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
      const char32_t c = printable ? b : next++;
      chars[b] = c;
      bytes[c] = static_cast<short>(b);
      append_utf8(c, utf8[b]);
    }
  }
};

const Tables& tables() {
  static const Tables t;
  return t;
}

}  // namespace

char32_t byte_level_char(unsigned char b) { return tables().chars[b]; }

int byte_of_char(char32_t c) { return c < tables().bytes.size() ? tables().bytes[c] : -1; }

void append_byte_level(std::string_view bytes, std::string& out) {
  const Tables& t = tables();
  for (char c : bytes) out += t.utf8[static_cast<unsigned char>(c)];
}

bool append_bytes_of(std::string_view text, std::string& out) {
  const std::size_t before = out.size();
  for (const char *p = text.data(), *end = p + text.size(); p < end;) {
    const int b = byte_of_char(next_code_point(p));
    if (b < 0) {
      out.resize(before);
      return false;
    }
    out += static_cast<char>(b);
  }
  return true;
}

}  // namespace redco
