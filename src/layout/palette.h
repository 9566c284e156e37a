// Colours for drawings: many that can be told apart and all light enough for black text.
#pragma once

#include <cstdint>

namespace tilewright {

struct Rgb {
  std::uint8_t r = 255, g = 255, b = 255;
};

/// Colour `index` of a palette of `count`. Up to 8: hues around the circle. More: four shades of
/// each hue for neighbours, so that the four threads of a quad look related.
Rgb palette_color(int index, int count);

}  // namespace tilewright
