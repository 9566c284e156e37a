// Drawings as SVG: a self-contained picture, legible at its natural size.
#pragma once

#include "layout/draw.h"

#include <string>
#include <vector>

namespace tilewright {

std::string to_svg(const Drawing& drawing);
/// Several drawings side by side under one title.
std::string to_svg(const std::vector<Drawing>& drawings, const std::string& title);

}  // namespace tilewright
