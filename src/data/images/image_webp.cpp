// WebP by libwebp: the first frame on its canvas, as Pillow reads it.
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>

#include "base/error.h"
#include "data/images/exif.h"
#include "data/images/image_formats.h"

namespace redco {

namespace {

struct FrameOfWebp {
  WebPIterator it{};
  ~FrameOfWebp() { WebPDemuxReleaseIterator(&it); }
};
struct ChunkOfWebp {
  WebPChunkIterator it{};
  ~ChunkOfWebp() { WebPDemuxReleaseChunkIterator(&it); }
};

}  // namespace

bool is_webp(std::string_view bytes) {
  return bytes.size() >= 12 && bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP";
}

Image decode_webp(std::string_view bytes, const std::string& where) {
  const auto check = [&](bool good, const char* why) {
    if (!good) throw ContentsError("{}: a broken WebP: {}", where, why);
  };
  const WebPData data{reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size()};
  const std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)> file(WebPDemux(&data), WebPDemuxDelete);
  check(file != nullptr, "its chunks are damaged, or the file ends early");
  Image image;
  image.height = WebPDemuxGetI(file.get(), WEBP_FF_CANVAS_HEIGHT);
  image.width = WebPDemuxGetI(file.get(), WEBP_FF_CANVAS_WIDTH);
  image.channels = 3;
  check_size(image, where);
  FrameOfWebp frame;
  check(WebPDemuxGetFrame(file.get(), 1, &frame.it) != 0, "it has no frame");
  const WebPIterator& f = frame.it;
  int width = 0, height = 0;
  check(WebPGetInfo(f.fragment.bytes, f.fragment.size, &width, &height) != 0 && width == f.width &&
            height == f.height && f.x_offset >= 0 && f.y_offset >= 0 && f.x_offset + width <= image.width &&
            f.y_offset + height <= image.height,
        "its first frame does not fit its canvas");
  const std::size_t row = static_cast<std::size_t>(3 * image.width);
  image.pixels.resize(row * static_cast<std::size_t>(image.height));  // black around the frame
  const std::size_t begin =
      static_cast<std::size_t>(f.y_offset) * row + 3 * static_cast<std::size_t>(f.x_offset);
  check(WebPDecodeRGBInto(f.fragment.bytes, f.fragment.size, image.pixels.data() + begin,
                          image.pixels.size() - begin, static_cast<int>(row)) != nullptr,
        "its pixels are damaged");
  ChunkOfWebp exif;
  if (WebPDemuxGetChunk(file.get(), "EXIF", 1, &exif.it) == 0) return image;
  const WebPData& block = exif.it.chunk;
  return upright(std::move(image),
                 exif_orientation({reinterpret_cast<const char*>(block.bytes), block.size}));
}

}  // namespace redco
