// Recordings as pipelines read them: from data files (pipeline/caption_dataset.h), and of any length from the
// lines of requests.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/audio/audio_source.h"
#include "data/audio/log_mel.h"
#include "pipeline/caption_dataset.h"

namespace redco {

class Recordings : public CaptionedInputs {
 public:
  // audio: see AudioSource. cut_long: a recording longer than the model's window loses its end in read(),
  // else it is an error.
  Recordings(const std::optional<std::string>& audio, LogMel spectrum, bool cut_long)
      : source_(audio), spectrum_(std::move(spectrum)), cut_long_(cut_long) {}

  const LogMel& spectrum() const { return spectrum_; }
  Words words() const override { return {"audio", "features", "recording", "texts"}; }
  std::vector<float> read(const std::string& name, const std::string& folder) const override;
  // LogMel::whole() of a recording, and its number of samples. ContentsError if it is longer than four hours.
  std::vector<float> whole(const std::string& name, const std::string& folder, i64* n) const;
  std::string fingerprint() const override { return spectrum_.fingerprint() + (cut_long_ ? "cut" : ""); }

 private:
  AudioSource source_;
  LogMel spectrum_;
  bool cut_long_;
};

}  // namespace redco
