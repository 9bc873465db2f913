#include "data/parquet/decompress.h"

#include <zlib.h>
#include <zstd.h>

#include <new>

#include "base/error.h"

namespace redco {

namespace {

[[noreturn]] void broken_page(const char* codec) {
  throw ContentsError("a page is damaged: its {} data do not unpack to the size in its header", codec);
}

std::string unpack_gzip(std::string_view packed, std::size_t size) {
  std::string out(size, '\0');
  z_stream z{};
  if (inflateInit2(&z, 15 + 32) != Z_OK) throw std::bad_alloc();
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  z.avail_in = static_cast<uInt>(packed.size());
  z.next_out = reinterpret_cast<Bytef*>(out.data());
  z.avail_out = static_cast<uInt>(size);
  const int result = inflate(&z, Z_FINISH);
  const bool whole = result == Z_STREAM_END && z.avail_out == 0;
  inflateEnd(&z);
  if (!whole) broken_page("gzip");
  return out;
}

std::string unpack_zstd(std::string_view packed, std::size_t size) {
  std::string out(size, '\0');
  if (ZSTD_decompress(out.data(), size, packed.data(), packed.size()) != size) broken_page("zstd");
  return out;
}

}  // namespace

std::string unpack_snappy(std::string_view in, std::size_t size) {
  std::size_t at = 0;
  const auto byte = [&]() -> std::size_t {
    if (at >= in.size()) broken_page("snappy");
    return static_cast<std::uint8_t>(in[at++]);
  };
  const auto little = [&](int n) {
    std::size_t v = 0;
    for (int i = 0; i < n; ++i) v |= byte() << (8 * i);
    return v;
  };
  std::size_t length = 0;
  for (int shift = 0;; shift += 7) {
    const std::size_t b = byte();
    if (shift > 28) broken_page("snappy");
    length |= (b & 127) << shift;
    if (b < 128) break;
  }
  if (length != size) broken_page("snappy");
  std::string out;
  out.reserve(size);
  while (at < in.size()) {
    const std::size_t tag = byte(), high = tag >> 2;
    std::size_t n = 0, offset = 0;
    if ((tag & 3) == 0) {  // a literal
      n = (high < 60 ? high : little(static_cast<int>(high) - 59)) + 1;
      if (n > in.size() - at || n > size - out.size()) broken_page("snappy");
      out.append(in, at, n);
      at += n;
      continue;
    }
    if ((tag & 3) == 1) {
      n = (high & 7) + 4;
      offset = (high >> 3) << 8 | byte();
    } else {
      n = high + 1;
      offset = little((tag & 3) == 2 ? 2 : 4);
    }
    if (offset == 0 || offset > out.size() || n > size - out.size()) broken_page("snappy");
    for (std::size_t i = 0; i < n; ++i) out += out[out.size() - offset];  // the two may overlap
  }
  if (out.size() != size) broken_page("snappy");
  return out;
}

std::string unpack_parquet(i64 codec, std::string_view packed, std::size_t size) {
  static const char* names[] = {"", "", "", "LZO", "Brotli", "LZ4", "", "LZ4"};
  switch (codec) {
    case 0:
      if (packed.size() != size) broken_page("plain");
      return std::string(packed);
    case 1:
      return unpack_snappy(packed, size);
    case 2:
      return unpack_gzip(packed, size);
    case 6:
      return unpack_zstd(packed, size);
    default:
      throw UsageError(
          "the pages are compressed with {}; redco reads snappy, gzip and zstd. Write the file again, e.g. "
          "pandas.read_parquet(a).to_parquet(b, compression='zstd')",
          codec > 0 && codec < 8 ? names[codec] : "an unknown codec");
  }
}

}  // namespace redco
