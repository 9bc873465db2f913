// Images that are drawn when they are read, so that jobs on images run without a download. Their names say
// all:
//   drawn:shapes/K   32 x 32 in colours: two of circle, square and triangle, small or large, one left of the
//                    other or above it. What is where follows from K, and the caption from what is where.
//   drawn:glyphs/K   28 x 28 grey: one of ten signs, moved, sized, slanted and with noise.
#pragma once

#include <string>

#include "data/image.h"

namespace redco {

bool is_drawn(const std::string& name);  // "drawn:..."
// ContentsError that begins with `where` for a name that there isn't.
Image draw_image(const std::string& name, const std::string& where);

// Of drawn:shapes/K: "a small red circle left of a large blue square".
std::string shapes_caption(i64 k);
// Of drawn:glyphs/K: "arrow", "bar", ...
std::string glyph_label(i64 k);

}  // namespace redco
