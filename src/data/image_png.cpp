// PNG. libpng reports errors by longjmp: the functions that it may jump over are plain C; objects that own
// memory live outside them.
#include <png.h>

#include <algorithm>
#include <csetjmp>
#include <cstring>

#include "base/error.h"
#include "base/words.h"
#include "data/image_formats.h"

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
  png_read_end(p.png, nullptr);
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
  return image;
}

}  // namespace redco
