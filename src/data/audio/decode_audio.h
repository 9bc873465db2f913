// Sound files as samples: WAV, FLAC, Ogg, MP3 and the other formats of libsndfile, as one channel at the rate
// of the model. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/types.h"

namespace redco {

// Whether this redco was built with the libraries for sound.
bool reads_audio();
// UsageError with the packages that the build lacked, unless reads_audio().
void require_audio();

// The endings of recordings' names, without the dot. Outside of archives the bytes of a file decide.
const std::vector<std::string>& audio_endings();
bool is_audio_name(const std::string& name);

// Whether the first bytes are those of a WAV, FLAC, Ogg or MP3 file.
bool is_audio(std::string_view bytes);

// Decodes a file. Samples of integers are divided by their largest value (16 bits: 32768), channels are
// averaged. Another sampling rate is converted by libsamplerate's sinc converter of medium quality
// (band-limited, signal-to-noise ratio 121 dB). Decoding ends after `most` samples of the result, so a longer
// recording gives exactly `most`. ContentsError that begins with `where` for other formats, damage, a file
// without samples, and samples that are not finite.
std::vector<float> decode_audio(std::string_view bytes, i64 rate, i64 most, const std::string& where);

}  // namespace redco
