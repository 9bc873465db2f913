#include "data/audio/log_mel.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <nlohmann/json.hpp>
#include <numbers>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/words.h"
#include "data/audio/decode_audio.h"

#ifdef REDCO_AUDIO
#include <kissfft/kissfft.hh>
#endif

namespace redco {

using Json = nlohmann::ordered_json;

namespace {

constexpr double kLeastEnergy = 1e-10, kDecades = 8, kMostFrequency = 8000;

// Slaney's mel scale: linear up to 1000 Hz, logarithmic above.
constexpr double kLinear = 200.0 / 3, kBorder = 1000, kBorderMel = 15;
const double kStep = std::log(6.4) / 27;
double to_mel(double hz) { return hz < kBorder ? hz / kLinear : kBorderMel + std::log(hz / kBorder) / kStep; }
double to_hz(double mel) {
  return mel < kBorderMel ? mel * kLinear : kBorder * std::exp(kStep * (mel - kBorderMel));
}

}  // namespace

// A triangle over frequencies first, first + 1, ..., of area 1.
struct LogMel::Band {
  i64 first = 0;
  std::vector<double> weights;
};

#ifdef REDCO_AUDIO
struct LogMel::Transform {
  kissfft<double> fft;
  std::vector<double> window;  // Hann, periodic

  explicit Transform(i64 n) : fft(static_cast<size_t>(n / 2), false), window(static_cast<size_t>(n)) {
    for (i64 i = 0; i < n; ++i)
      window[i] =
          0.5 - 0.5 * std::cos(2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(n));
  }
  // |x|^2 of the frequencies 0 to n / 2 of n windowed samples.
  void energies(std::vector<double>& samples, std::vector<std::complex<double>>& spectrum,
                std::vector<double>& out) const {
    for (size_t i = 0; i < window.size(); ++i) samples[i] *= window[i];
    fft.transform_real(samples.data(), spectrum.data());
    const size_t half = window.size() / 2;
    out[0] = spectrum[0].real() * spectrum[0].real();
    out[half] = spectrum[0].imag() * spectrum[0].imag();
    for (size_t k = 1; k < half; ++k) out[k] = std::norm(spectrum[k]);
  }
};
#else
struct LogMel::Transform {
  explicit Transform(i64) {}
  void energies(std::vector<double>&, std::vector<std::complex<double>>&, std::vector<double>&) const {}
};
#endif

LogMel::~LogMel() = default;
LogMel::LogMel(LogMel&&) noexcept = default;

LogMel::LogMel(const std::string& folder, i64 bands, i64 frames) : bands_(bands), frames_(frames) {
  require_audio();
  if (const std::string path = join_path(folder, "preprocessor_config.json"); !folder.empty() && exists(path))
    read(path);
  if (window() % rate_ != 0)
    throw UsageError(
        "[model] max_source_positions={} are {} seconds; expected whole seconds, a multiple of {} positions",
        frames_ / 2, seconds(), rate_ / hop_ / 2);
  const i64 n = n_fft_ / 2 + 1;
  const double last = to_mel(kMostFrequency);
  std::vector<double> hz;
  for (i64 b = 0; b < bands_ + 2; ++b)
    hz.push_back(to_hz(last * static_cast<double>(b) / static_cast<double>(bands_ + 1)));
  for (i64 b = 0; b < bands_; ++b) {
    Band band;
    for (i64 k = 0; k < n; ++k) {
      const double f = static_cast<double>(rate_ / 2) * static_cast<double>(k) / static_cast<double>(n - 1);
      const double up = (f - hz[b]) / (hz[b + 1] - hz[b]), down = (hz[b + 2] - f) / (hz[b + 2] - hz[b + 1]);
      const double w = std::min(up, down) * 2 / (hz[b + 2] - hz[b]);
      if (w > 0 && band.weights.empty()) band.first = k;
      if (w > 0) band.weights.push_back(w);
    }
    filters_.push_back(std::move(band));
  }
  transform_ = std::make_unique<const Transform>(n_fft_);
}

void LogMel::read(const std::string& path) {
  const Json j = Json::parse(read_file(path, i64{1} << 24), nullptr, false);
  if (!j.is_object()) throw ContentsError("[model] {}: expected an object of settings", path);
  const auto fail = [&](const std::string& key, const std::string& expected) {
    throw ContentsError(
        "[model] {}: {}={}: expected {}", path, key,
        j.contains(key) ? excerpt(j[key].dump(-1, ' ', false, Json::error_handler_t::replace)) : "(absent)",
        expected);
  };
  const auto integer = [&](const char* key, i64& to, i64 least, i64 most) {
    if (!j.contains(key) || j[key].is_null()) return;
    if (!j[key].is_number() || j[key] != std::floor(j[key].get<double>()) || j[key] < least || j[key] > most)
      fail(key, fmt::format("a whole number from {} to {}", least, most));
    to = static_cast<i64>(j[key].get<double>());
  };
  i64 bands = bands_, seconds = -1;
  integer("feature_size", bands, 1, 4096);
  integer("sampling_rate", rate_, 2 * static_cast<i64>(kMostFrequency), 192'000);
  integer("hop_length", hop_, 1, 1 << 16);
  integer("n_fft", n_fft_, 4, 1 << 16);
  integer("chunk_length", seconds, 1, 86'400);
  if (n_fft_ % 2 != 0) fail("n_fft", "an even number");
  if (bands != bands_) fail("feature_size", fmt::format("num_mel_bins={} of the model", bands_));
  if (seconds >= 0 && seconds * rate_ != window())
    fail("chunk_length",
         fmt::format("{} seconds, which are max_source_positions={} of the model",
                     static_cast<double>(window()) / static_cast<double>(rate_), frames_ / 2));
  if (n_fft_ / 2 >= window()) fail("n_fft", "at most twice the samples of a window");
  for (const char* zero : {"padding_value", "dither"})
    if (j.contains(zero) && !j[zero].is_null() && j[zero] != 0) fail(zero, "0");
  // Keys that follow from the others, or without an effect here.
  static const std::set<std::string> inert = {"feature_extractor_type",
                                              "processor_class",
                                              "return_attention_mask",
                                              "padding_side",
                                              "n_samples",
                                              "nb_max_frames",
                                              "mel_filters",
                                              "padding_value",
                                              "dither",
                                              "feature_size",
                                              "sampling_rate",
                                              "hop_length",
                                              "n_fft",
                                              "chunk_length",
                                              "auto_map"};
  for (const auto& [key, value] : j.items())
    if (!inert.count(key) && !value.is_null() && value != Json(false))
      fail(key, "no such key; redco does not support it");
}

std::vector<float> LogMel::operator()(std::span<const float> samples) const {
  return spectrum(samples.first(std::min<size_t>(samples.size(), static_cast<size_t>(window()))), window(),
                  frames_);
}

std::vector<float> LogMel::whole(std::span<const float> samples) const {
  const i64 n = std::ssize(samples);
  return n <= window() ? (*this)(samples) : spectrum(samples, n, n / hop_);
}

// Of samples that silence follows up to `all`.
std::vector<float> LogMel::spectrum(std::span<const float> samples, i64 all, i64 frames) const {
  const i64 n = std::ssize(samples), half = n_fft_ / 2;
  // Sample i, where the ends are reflected.
  const auto at = [&](i64 i) {
    i = i < 0 ? -i : i >= all ? 2 * (all - 1) - i : i;
    return i < n ? static_cast<double>(samples[i]) : 0.0;
  };
  std::vector<double> one(static_cast<size_t>(n_fft_)), energy(static_cast<size_t>(half + 1));
  std::vector<std::complex<double>> spectrum(static_cast<size_t>(half));
  std::vector<double> logs(static_cast<size_t>(bands_ * frames), std::log10(kLeastEnergy));
  double top = logs.empty() ? 0 : logs[0];
  for (i64 t = 0; t < frames; ++t) {
    const i64 begin = t * hop_ - half;
    if (begin >= n && begin + n_fft_ <= all) continue;  // silence
    for (i64 i = 0; i < n_fft_; ++i) one[i] = at(begin + i);
    transform_->energies(one, spectrum, energy);
    for (i64 b = 0; b < bands_; ++b) {
      double sum = 0;
      const Band& band = filters_[b];
      for (size_t k = 0; k < band.weights.size(); ++k) sum += band.weights[k] * energy[band.first + k];
      top = std::max(top, logs[b * frames + t] = std::log10(std::max(sum, kLeastEnergy)));
    }
  }
  std::vector<float> out(logs.size());
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<float>((std::max(logs[i], top - kDecades) + 4) / 4);
  return out;
}

std::string LogMel::to_json() const {
  const Json j = {{"chunk_length", window() / rate_},
                  {"dither", 0.0},
                  {"feature_extractor_type", "WhisperFeatureExtractor"},
                  {"feature_size", bands_},
                  {"hop_length", hop_},
                  {"n_fft", n_fft_},
                  {"n_samples", window()},
                  {"nb_max_frames", frames_},
                  {"padding_side", "right"},
                  {"padding_value", 0.0},
                  {"processor_class", "WhisperProcessor"},
                  {"return_attention_mask", false},
                  {"sampling_rate", rate_}};
  return j.dump(2) + "\n";
}

}  // namespace redco
