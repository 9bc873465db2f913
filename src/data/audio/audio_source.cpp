#include "data/audio/audio_source.h"

#include "base/words.h"
#include "data/audio/decode_audio.h"
#include "data/builtin/made_sounds.h"

namespace redco {

std::string AudioSource::where(const std::string& name, const std::string& folder) const {
  return is_made_sound(name) ? excerpt(name) : files_.where(name, folder);
}

std::vector<float> AudioSource::read(const std::string& name, const std::string& folder, i64 rate,
                                     i64 most) const {
  if (!is_made_sound(name))
    return decode_audio(files_.read(name, folder), rate, most, "[data] " + where(name, folder));
  std::vector<float> out = make_sound(name, rate, "[data]");
  if (static_cast<i64>(out.size()) > most) out.resize(static_cast<size_t>(most));
  return out;
}

}  // namespace redco
