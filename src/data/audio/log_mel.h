// From samples to the input of a speech model: the logarithms of the energies in mel-spaced bands, as
// transformers' WhisperFeatureExtractor computes them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

class LogMel {
 public:
  // For a model that reads `bands` x `frames`, with preprocessor_config.json of `folder` if it exists ("":
  // none). Without the file: 16 kHz, windows of 400 samples, one every 160. ContentsError that names the file
  // for unknown keys and values, and for sizes that differ from the model's. UsageError without the libraries
  // for sound.
  LogMel(const std::string& folder, i64 bands, i64 frames);
  ~LogMel();
  LogMel(LogMel&&) noexcept;

  i64 hop() const { return hop_; }               // samples of a frame
  i64 rate() const { return rate_; }             // samples a second
  i64 window() const { return frames_ * hop_; }  // samples of one input of the model
  double seconds() const { return static_cast<double>(window()) / static_cast<double>(rate_); }

  // [bands, frames] of the first window() samples; shorter recordings are followed by silence. Thread-safe.
  std::vector<float> operator()(std::span<const float> samples) const;
  // [bands, n] of a recording of any length, with n of at least `frames`: those of a long one have one
  // maximum, below which energies are cut.
  std::vector<float> whole(std::span<const float> samples) const;

  // An equivalent preprocessor_config.json, to be saved with a model's weights.
  std::string to_json() const;
  // Differs if the result may differ.
  std::string fingerprint() const { return to_json(); }

 private:
  void read(const std::string& path);
  std::vector<float> spectrum(std::span<const float> samples, i64 all, i64 frames) const;
  struct Band;
  struct Transform;
  i64 bands_, frames_, rate_ = 16000, hop_ = 160, n_fft_ = 400;
  std::vector<Band> filters_;
  std::unique_ptr<const Transform> transform_;
};

}  // namespace redco
