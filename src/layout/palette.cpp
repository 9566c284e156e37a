#include "layout/palette.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace tilewright {

namespace {

// OKLCH (lightness, chroma, hue in turns) to sRGB. The space is perceptual: equal lightness looks
// equally light, so one text colour serves all cells. Source: B. Ottosson, "A perceptual color
// space", 2020.
Rgb from_oklch(double lightness, double chroma, double hue) {
  const double angle = 2 * std::numbers::pi * hue;
  const double a = chroma * std::cos(angle), b = chroma * std::sin(angle);
  const double l = std::pow(lightness + 0.3963377774 * a + 0.2158037573 * b, 3);
  const double m = std::pow(lightness - 0.1055613458 * a - 0.0638541728 * b, 3);
  const double s = std::pow(lightness - 0.0894841775 * a - 1.2914855480 * b, 3);
  const auto to_byte = [](double linear) {
    const double x = std::clamp(linear, 0.0, 1.0);
    const double srgb = x <= 0.0031308 ? 12.92 * x : 1.055 * std::pow(x, 1 / 2.4) - 0.055;
    return static_cast<std::uint8_t>(std::lround(255 * srgb));
  };
  return {to_byte(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
          to_byte(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
          to_byte(-0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s)};
}

}  // namespace

Rgb palette_color(int index, int count) {
  constexpr double kFirstHue = 0.03;
  if (count <= 8) return from_oklch(0.86, 0.085, kFirstHue + index / 8.0);
  const int shade = index % 4, hue = index / 4 % 8;
  return from_oklch(0.92 - 0.045 * shade, 0.06 + 0.018 * shade, kFirstHue + hue / 8.0);
}

}  // namespace tilewright
