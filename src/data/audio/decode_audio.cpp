#include "data/audio/decode_audio.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/ascii.h"
#include "base/error.h"
#include "base/words.h"

#ifdef REDCO_AUDIO
#include <samplerate.h>
#include <sndfile.h>
#endif

namespace redco {

const std::vector<std::string>& audio_endings() {
  static const std::vector<std::string> kEndings = {"wav", "flac", "mp3", "ogg"};
  return kEndings;
}

bool is_audio_name(const std::string& name) {
  const std::size_t dot = name.rfind('.');
  const std::string ending = dot == std::string::npos ? "" : ascii_lower(name.substr(dot + 1));
  return std::ranges::find(audio_endings(), ending) != audio_endings().end();
}

bool is_audio(std::string_view bytes) {
  if (bytes.size() < 12) return false;
  if (bytes.starts_with("RIFF")) return bytes.substr(8, 4) == "WAVE";
  // An MP3 file begins with a tag of version 2 to 4, or with 11 set bits and layer III.
  if (bytes.starts_with("ID3")) return bytes[3] >= 2 && bytes[3] <= 4;
  if (bytes[0] == '\xff') return (bytes[1] & 0xe6) == 0xe2;
  // Zeros follow: the kind and the length of the first block, and the version.
  return (bytes.starts_with("fLaC") && bytes[5] == 0) || (bytes.starts_with("OggS") && bytes[4] == 0);
}

#ifdef REDCO_AUDIO

bool reads_audio() { return true; }
void require_audio() {}

namespace {

constexpr i64 kFrames = 4096;  // of a block
constexpr int kLeastRate = 1000, kMostRate = 1'000'000, kMostChannels = 64;

// A file in memory, for libsndfile.
struct Bytes {
  std::string_view bytes;
  sf_count_t at = 0;

  static Bytes& of(void* user) { return *static_cast<Bytes*>(user); }
  static sf_count_t size(void* user) { return static_cast<sf_count_t>(of(user).bytes.size()); }
  static sf_count_t seek(sf_count_t offset, int whence, void* user) {
    Bytes& b = of(user);
    const sf_count_t from = whence == SEEK_SET ? 0 : whence == SEEK_CUR ? b.at : size(user);
    b.at = std::clamp<sf_count_t>(from + offset, 0, size(user));
    return b.at;
  }
  static sf_count_t read(void* to, sf_count_t n, void* user) {
    Bytes& b = of(user);
    n = std::clamp<sf_count_t>(n, 0, size(user) - b.at);
    std::copy_n(b.bytes.data() + b.at, n, static_cast<char*>(to));
    b.at += n;
    return n;
  }
  static sf_count_t write(const void*, sf_count_t, void*) { return 0; }
  static sf_count_t tell(void* user) { return of(user).at; }
};

// Appends samples at another rate.
class Converter {
 public:
  Converter(i64 from, i64 to, const std::string& where)
      : ratio_(static_cast<double>(to) / static_cast<double>(from)), where_(where) {
    int error = 0;
    state_.reset(src_new(SRC_SINC_MEDIUM_QUALITY, 1, &error));
    if (!state_) fail(error);
  }
  void add(const std::vector<float>& in, bool last, std::vector<float>& out) {
    std::vector<float> room(static_cast<size_t>(static_cast<double>(kFrames) * ratio_) + 64);
    SRC_DATA d{};
    d.data_in = in.data();
    d.input_frames = static_cast<long>(in.size());
    d.data_out = room.data();
    d.output_frames = static_cast<long>(room.size());
    d.src_ratio = ratio_;
    d.end_of_input = last;
    do {
      if (const int error = src_process(state_.get(), &d)) fail(error);
      out.insert(out.end(), room.begin(), room.begin() + d.output_frames_gen);
      d.data_in += d.input_frames_used;
      d.input_frames -= d.input_frames_used;
    } while (d.input_frames > 0 || (last && d.output_frames_gen > 0));
  }

 private:
  [[noreturn]] void fail(int error) const {
    throw ContentsError("{}: the sampling rate can't be converted: {}", where_, src_strerror(error));
  }
  struct Free {
    void operator()(SRC_STATE* s) const { src_delete(s); }
  };
  double ratio_;
  const std::string& where_;
  std::unique_ptr<SRC_STATE, Free> state_;
};

}  // namespace

std::vector<float> decode_audio(std::string_view bytes, i64 rate, i64 most, const std::string& where) {
  if (bytes.empty())
    throw ContentsError("{}: the file is empty; expected a recording (WAV, FLAC, ...)", where);
  SF_VIRTUAL_IO io = {Bytes::size, Bytes::seek, Bytes::read, Bytes::write, Bytes::tell};
  Bytes source{bytes};
  SF_INFO info{};
  const std::unique_ptr<SNDFILE, int (*)(SNDFILE*)> file(sf_open_virtual(&io, SFM_READ, &info, &source),
                                                         sf_close);
  if (!file) {
    std::string why = sf_strerror(nullptr);
    while (why.ends_with('.')) why.pop_back();
    throw ContentsError(
        "{}: not a recording that libsndfile reads (WAV, FLAC, Ogg, MP3, ...): {}. It begins with \"{}\"",
        where, excerpt(why), excerpt(bytes.substr(0, 16), 16));
  }
  if (info.samplerate < kLeastRate || info.samplerate > kMostRate || info.channels < 1 ||
      info.channels > kMostChannels)
    throw ContentsError("{}: {} channels at {} Hz; expected 1 to {} channels at {} to {} Hz", where,
                        info.channels, info.samplerate, kMostChannels, kLeastRate, kMostRate);
  std::unique_ptr<Converter> converter;
  if (info.samplerate != rate) converter = std::make_unique<Converter>(info.samplerate, rate, where);
  std::vector<float> block(static_cast<size_t>(kFrames * info.channels)), mono, out;
  for (bool end = false; !end && static_cast<i64>(out.size()) < most;) {
    const sf_count_t n = sf_readf_float(file.get(), block.data(), kFrames);
    end = n < kFrames;
    mono.resize(static_cast<size_t>(n));
    for (sf_count_t i = 0; i < n; ++i) {
      double sum = 0;
      for (int c = 0; c < info.channels; ++c) sum += static_cast<double>(block[i * info.channels + c]);
      mono[i] = static_cast<float>(sum / info.channels);
    }
    if (converter)
      converter->add(mono, end, out);
    else
      out.insert(out.end(), mono.begin(), mono.end());
  }
  if (const int error = sf_error(file.get()))
    throw ContentsError("{}: a broken recording: {}", where, excerpt(sf_error_number(error)));
  if (out.empty()) throw ContentsError("{}: the recording has no samples", where);
  if (static_cast<i64>(out.size()) > most) out.resize(static_cast<size_t>(most));
  if (!std::ranges::all_of(out, [](float x) { return std::isfinite(x); }))
    throw ContentsError("{}: the recording has samples that are not finite numbers", where);
  return out;
}

#else

bool reads_audio() { return false; }
void require_audio() {
  throw UsageError(
      "[data] this redco was built without libraries for sound, which recordings need. Install libsndfile1-dev, "
      "libsamplerate0-dev and libkissfft-dev, and build redco again");
}
std::vector<float> decode_audio(std::string_view, i64, i64, const std::string&) {
  require_audio();
  return {};
}

#endif

}  // namespace redco
