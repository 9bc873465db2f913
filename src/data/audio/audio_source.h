// Recordings by the names in the lines of data files.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/images/named_files.h"

namespace redco {

class AudioSource {
 public:
  // audio: a folder or .zip with all names (data.audio). None: names are paths relative to the folder of the
  // file with the line.
  explicit AudioSource(const std::optional<std::string>& audio) : files_(audio, "audio", "data.audio") {}

  // The first `most` samples, at `rate`, of the recording called `name` in a line of a file in `folder`;
  // "sounded:..." are made (data/builtin/made_sounds.h), all others are files (named_files.h,
  // decode_audio.h). ContentsError with the recording's path if it is missing or broken. Thread-safe.
  std::vector<float> read(const std::string& name, const std::string& folder, i64 rate, i64 most) const;
  // The recording's name in messages.
  std::string where(const std::string& name, const std::string& folder) const;

 private:
  NamedFiles files_;
};

}  // namespace redco
