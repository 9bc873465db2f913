// Recordings that are made when they are read, so that jobs on speech run without a download. The name
// defines the recording:
//   sounded:digits/K   one to four digits, each as the two tones of a telephone's key, with pauses, changing
//                      loudness and noise; less than a second. K decides all of it.
#pragma once

#include <string>
#include <vector>

#include "base/types.h"

namespace redco {

bool is_made_sound(const std::string& name);  // "sounded:..."
// The samples at `rate` per second. ContentsError that begins with `where` for an unknown name.
std::vector<float> make_sound(const std::string& name, i64 rate, const std::string& where);

// Of sounded:digits/K: "3 1 4".
std::string sounded_digits(i64 k);

}  // namespace redco
