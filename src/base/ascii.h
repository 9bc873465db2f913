// Letters of ASCII in texts of any encoding.
#pragma once

#include <string>

namespace redco {

// A to Z become a to z; all other bytes stay.
inline std::string ascii_lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

}  // namespace redco
