#include "base/compress.h"

#include <zlib.h>

#include <algorithm>

#include "base/error.h"

namespace redco {

std::string compress(std::string_view bytes) {
  uLongf n = compressBound(static_cast<uLong>(bytes.size()));
  std::string out(n, '\0');
  const int code =
      compress2(reinterpret_cast<Bytef*>(out.data()), &n, reinterpret_cast<const Bytef*>(bytes.data()),
                static_cast<uLong>(bytes.size()), 9);
  REDCO_CHECK(code == Z_OK, "compress2: {}", code);
  out.resize(n);
  return out;
}

std::string decompress(std::string_view bytes, i64 max_bytes, const std::string& where) {
  for (std::size_t room = std::max<std::size_t>(4096, 4 * bytes.size());; room *= 4) {
    room = std::min(room, static_cast<std::size_t>(max_bytes));
    std::string out(room, '\0');
    uLongf n = static_cast<uLongf>(room);
    uLong used = static_cast<uLong>(bytes.size());
    const int code = uncompress2(reinterpret_cast<Bytef*>(out.data()), &n,
                                 reinterpret_cast<const Bytef*>(bytes.data()), &used);
    if (code == Z_OK && used != bytes.size())
      throw ContentsError("{}: {} bytes follow the compressed data", where, bytes.size() - used);
    if (code == Z_OK) {
      out.resize(n);
      return out;
    }
    if (code == Z_BUF_ERROR && room < static_cast<std::size_t>(max_bytes)) continue;
    throw ContentsError(
        "{}: {}", where,
        code == Z_BUF_ERROR
            ? fmt::format("compressed data is truncated, or unpacks to more than {} bytes", max_bytes)
            : "compressed data is damaged");
  }
}

}  // namespace redco
