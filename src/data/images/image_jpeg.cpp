// JPEG. libjpeg reports errors by longjmp: the functions that it may jump over are plain C; objects that own
// memory live outside them.
#include <algorithm>
#include <csetjmp>
#include <cstdio>
// Needs cstdio before it.
#include <jerror.h>
#include <jpeglib.h>

#include "base/error.h"
#include "base/words.h"
#include "data/images/exif.h"
#include "data/images/image_formats.h"

namespace redco {

namespace {

// Limits the scans of a progressive image, each of which reads all pixels.
constexpr int kMaxScans = 100;

struct Jpeg {
  jpeg_decompress_struct c{};
  jpeg_error_mgr errors{};
  jpeg_source_mgr source{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump;
  char why[JMSG_LENGTH_MAX] = "";
  bool made = false;

  ~Jpeg() {
    if (made) jpeg_destroy_decompress(&c);
  }
};

[[noreturn]] void on_error(j_common_ptr c) {
  auto* j = static_cast<Jpeg*>(c->client_data);
  c->err->format_message(c, j->why);
  std::longjmp(j->jump, 1);
}
// Warnings: small damage that readers tolerate (Pillow too).
void on_message(j_common_ptr, int) {}

void nothing(j_decompress_ptr) {}
boolean on_empty(j_decompress_ptr c) {
  ERREXIT(c, JERR_INPUT_EOF);
  return FALSE;
}
void on_skip(j_decompress_ptr c, long n) {
  if (n <= 0) return;
  if (static_cast<unsigned long>(n) > c->src->bytes_in_buffer) ERREXIT(c, JERR_INPUT_EOF);
  c->src->next_input_byte += n;
  c->src->bytes_in_buffer -= static_cast<size_t>(n);
}
void on_progress(j_common_ptr c) {
  if (reinterpret_cast<j_decompress_ptr>(c)->input_scan_number > kMaxScans)
    ERREXIT1(c, JERR_BAD_PROGRESSION, kMaxScans);
}

// Reads the header; false: see j.why.
bool read_header(Jpeg& j, std::string_view bytes) {
  j.c.err = jpeg_std_error(&j.errors);
  j.errors.error_exit = on_error;
  j.errors.emit_message = on_message;
  j.c.client_data = &j;
  if (setjmp(j.jump)) return false;
  jpeg_create_decompress(&j.c);
  j.made = true;
  j.source.next_input_byte = reinterpret_cast<const JOCTET*>(bytes.data());
  j.source.bytes_in_buffer = bytes.size();
  j.source.init_source = nothing;
  j.source.fill_input_buffer = on_empty;
  j.source.skip_input_data = on_skip;
  j.source.resync_to_restart = jpeg_resync_to_restart;
  j.source.term_source = nothing;
  j.c.src = &j.source;
  j.progress.progress_monitor = on_progress;
  j.c.progress = &j.progress;
  jpeg_save_markers(&j.c, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&j.c, TRUE);
  return true;
}

bool start(Jpeg& j) {
  if (setjmp(j.jump)) return false;
  const J_COLOR_SPACE stored = j.c.jpeg_color_space;
  j.c.out_color_space = stored == JCS_GRAYSCALE                    ? JCS_GRAYSCALE
                        : stored == JCS_CMYK || stored == JCS_YCCK ? JCS_CMYK
                                                                   : JCS_RGB;
  jpeg_start_decompress(&j.c);
  return true;
}

bool read_rows(Jpeg& j, JSAMPLE* to, size_t row) {
  if (setjmp(j.jump)) return false;
  while (j.c.output_scanline < j.c.output_height) {
    JSAMPROW at = to + j.c.output_scanline * row;
    jpeg_read_scanlines(&j.c, &at, 1);
  }
  jpeg_finish_decompress(&j.c);
  return true;
}

// CMYK files store inverted inks: 255 is no ink.
Image from_cmyk(const Image& image) {
  Image out{image.height, image.width, 3, {}};
  out.pixels.resize(static_cast<size_t>(image.height * image.width * 3));
  const std::uint8_t* from = image.pixels.data();
  for (size_t i = 0; i < out.pixels.size(); ++i) {
    const size_t pixel = i / 3, c = i % 3;
    const int paper = from[4 * pixel + 3], ink = 255 - from[4 * pixel + c];
    const int t = ink * paper + 128;  // / 255, rounded
    out.pixels[i] = static_cast<std::uint8_t>(std::clamp(paper - (((t >> 8) + t) >> 8), 0, 255));
  }
  return out;
}

int orientation_of(const Jpeg& j) {
  for (const jpeg_marker_struct* m = j.c.marker_list; m; m = m->next) {
    const std::string_view data(reinterpret_cast<const char*>(m->data), m->data_length);
    if (data.starts_with(std::string_view("Exif\0\0", 6))) return exif_orientation(data);
  }
  return 1;
}

}  // namespace

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

Image decode_jpeg(std::string_view bytes, const std::string& where) {
  Jpeg j;
  const auto check = [&](bool good) {
    if (!good) throw ContentsError("{}: a broken JPEG: {}", where, excerpt(j.why));
  };
  check(read_header(j, bytes));
  Image image;
  image.height = j.c.image_height;
  image.width = j.c.image_width;
  check_size(image, where);
  check(start(j));
  image.channels = j.c.output_components;
  const int orientation = orientation_of(j);
  const size_t row = static_cast<size_t>(image.width * image.channels);
  image.pixels.resize(row * static_cast<size_t>(image.height));
  check(read_rows(j, image.pixels.data(), row));
  return upright(image.channels == 4 ? from_cmyk(image) : std::move(image), orientation);
}

}  // namespace redco
