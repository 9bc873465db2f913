// Images that are drawn when they are read, so that jobs on images run without a download. The name defines
// the image:
//   drawn:shapes/K   32 x 32 in colour: two of circle, square and triangle, small or large, one left of the
//                    other or above it. K decides the shapes and their places; the caption follows from them.
//   drawn:glyphs/K   28 x 28 grey: one of ten signs, shifted, scaled, slanted and with noise.
#pragma once

#include <string>

#include "data/images/image.h"

namespace redco {

bool is_drawn(const std::string& name);  // "drawn:..."
// ContentsError that begins with `where` for an unknown name.
Image draw_image(const std::string& name, const std::string& where);

// Of drawn:shapes/K: "a small red circle left of a large blue square".
std::string shapes_caption(i64 k);
// Of drawn:glyphs/K: "arrow", "bar", ...
std::string glyph_label(i64 k);

}  // namespace redco
