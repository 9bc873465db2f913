// PNG. libpng reports errors by longjmp: the functions that it may jump over are plain C; objects that own
// memory live outside them.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "base/base64.h"
#include "base/error.h"
#include "base/words.h"
#include "data/images/exif.h"
#include "data/images/image_formats.h"

namespace redco {

namespace {

struct Png {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const char* next = nullptr;
  size_t left = 0;
  char why[160] = "";

  ~Png() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void on_error(png_structp png, png_const_charp message) {
  auto* p = static_cast<Png*>(png_get_error_ptr(png));
  std::strncpy(p->why, message, sizeof p->why - 1);
  png_longjmp(png, 1);
}
void on_warning(png_structp, png_const_charp) {}
void on_read(png_structp png, png_bytep to, size_t n) {
  auto* p = static_cast<Png*>(png_get_io_ptr(png));
  if (n > p->left) png_error(png, "the file ends early");
  std::memcpy(to, p->next, n);
  p->next += n;
  p->left -= n;
}

// Reads the header; false: see p.why.
bool read_header(Png& p) {
  if (setjmp(png_jmpbuf(p.png))) return false;
  png_set_read_fn(p.png, &p, on_read);
  // decode_image checks sizes; this limits the chunks without pixels.
  png_set_user_limits(p.png, 0x7fffffff, 0x7fffffff);
  png_set_chunk_malloc_max(p.png, 16 << 20);
  png_set_chunk_cache_max(p.png, 64);
  png_read_info(p.png, p.info);
  return true;
}

// Converts every kind to 8 bits of grey or RGB.
bool set_transforms(Png& p) {
  if (setjmp(png_jmpbuf(p.png))) return false;
  const int type = png_get_color_type(p.png, p.info);
  if (png_get_bit_depth(p.png, p.info) == 16) png_set_strip_16(p.png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(p.png);
  if (type == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(p.png);
  png_set_strip_alpha(p.png);
  png_set_interlace_handling(p.png);
  png_read_update_info(p.png, p.info);
  return true;
}

bool read_rows(Png& p, png_bytepp rows) {
  if (setjmp(png_jmpbuf(p.png))) return false;
  png_read_image(p.png, rows);
  png_read_end(p.png, p.info);  // the chunk eXIf may follow the pixels
  return true;
}

}  // namespace

bool is_png(std::string_view bytes) { return bytes.starts_with("\x89PNG\r\n\x1a\n"); }

Image decode_png(std::string_view bytes, const std::string& where) {
  Png p;
  p.next = bytes.data();
  p.left = bytes.size();
  const auto check = [&](bool good) {
    if (!good) throw ContentsError("{}: a broken PNG: {}", where, excerpt(p.why));
  };
  p.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &p, on_error, on_warning);
  REDCO_CHECK(p.png, "libpng could not create a reader");
  p.info = png_create_info_struct(p.png);
  REDCO_CHECK(p.info, "libpng could not allocate a header");
  check(read_header(p));
  Image image;
  image.height = png_get_image_height(p.png, p.info);
  image.width = png_get_image_width(p.png, p.info);
  check_size(image, where);
  // Deflate expands by at most 1032: sizes that the stored bytes can't reach are rejected before memory is
  // allocated.
  const u64 stored = (static_cast<u64>(image.width) * png_get_channels(p.png, p.info) *
                          png_get_bit_depth(p.png, p.info) / 8 +
                      1) *
                     static_cast<u64>(image.height);
  if (stored / 1032 > bytes.size())
    throw ContentsError("{}: a broken PNG: {} x {} pixels can't be stored in {} bytes", where, image.height,
                        image.width, bytes.size());
  check(set_transforms(p));
  image.channels = png_get_channels(p.png, p.info);
  const size_t row = static_cast<size_t>(image.width * image.channels);
  REDCO_CHECK((image.channels == 1 || image.channels == 3) && png_get_rowbytes(p.png, p.info) == row);
  image.pixels.resize(row * static_cast<size_t>(image.height));
  std::vector<png_bytep> rows;
  for (i64 y = 0; y < image.height; ++y) rows.push_back(image.pixels.data() + static_cast<size_t>(y) * row);
  check(read_rows(p, rows.data()));
  png_bytep exif = nullptr;
  png_uint_32 n_exif = 0;
  if (png_get_eXIf_1(p.png, p.info, &n_exif, &exif) == 0) return image;
  return upright(std::move(image), exif_orientation({reinterpret_cast<const char*>(exif), n_exif}));
}

namespace {

struct PngWriter {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string bytes;
  char why[160] = "";

  ~PngWriter() { png_destroy_write_struct(&png, &info); }
};

[[noreturn]] void on_write_error(png_structp png, png_const_charp message) {
  auto* p = static_cast<PngWriter*>(png_get_error_ptr(png));
  std::strncpy(p->why, message, sizeof p->why - 1);
  png_longjmp(png, 1);
}
void on_write(png_structp png, png_bytep from, size_t n) {
  static_cast<PngWriter*>(png_get_io_ptr(png))->bytes.append(reinterpret_cast<const char*>(from), n);
}
void on_flush(png_structp) {}

bool write_rows(PngWriter& p, const Image& image, png_bytepp rows) {
  if (setjmp(png_jmpbuf(p.png))) return false;
  png_set_write_fn(p.png, &p, on_write, on_flush);
  png_set_IHDR(p.png, p.info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height),
               8, image.channels == 1 ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(p.png, p.info);
  png_write_image(p.png, rows);
  png_write_end(p.png, nullptr);
  return true;
}

constexpr std::string_view kPngUri = "data:image/png;base64,";

}  // namespace

std::string encode_png(const Image& image) {
  REDCO_CHECK(image.channels == 1 || image.channels == 3, "an image of {} channels", image.channels);
  const size_t row = static_cast<size_t>(image.width * image.channels);
  REDCO_CHECK(image.height > 0 && row > 0 && image.pixels.size() == row * static_cast<size_t>(image.height),
              "an image of {} x {} pixels in {} channels with {} bytes", image.height, image.width,
              image.channels, image.pixels.size());
  PngWriter p;
  p.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &p, on_write_error, on_warning);
  REDCO_CHECK(p.png, "libpng could not create a writer");
  p.info = png_create_info_struct(p.png);
  REDCO_CHECK(p.info, "libpng could not allocate a header");
  std::vector<png_bytep> rows;
  for (size_t y = 0; y < static_cast<size_t>(image.height); ++y)
    rows.push_back(const_cast<png_bytep>(image.pixels.data() + y * row));
  REDCO_CHECK(write_rows(p, image, rows.data()), "libpng could not write an image: {}", p.why);
  return std::move(p.bytes);
}

std::string png_data_uri(const Image& image) {
  return std::string(kPngUri) + encode_base64(encode_png(image));
}

std::optional<std::string> png_of_data_uri(std::string_view text) {
  if (!text.starts_with(kPngUri)) return std::nullopt;
  try {
    std::string bytes = decode_base64(text.substr(kPngUri.size()), "");
    if (is_png(bytes)) return bytes;
  } catch (const ContentsError&) {
  }
  return std::nullopt;
}

}  // namespace redco
