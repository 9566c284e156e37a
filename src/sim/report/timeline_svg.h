// A predicted timeline as a picture.
#pragma once

#include "sim/report/prediction.h"

#include <string>

namespace tilewright::sim {

/// The first clocks of a CTA: a row for the tensor cores of its SM and one for each warp that stays
/// longer than the others, coloured by what it waits for. Where a wait at a barrier ends, a line
/// leads from the warp that ended it to those that go on. An SVG file, for light and dark pages.
std::string timeline_svg(const std::string& kernel, const Prediction& prediction);

}  // namespace tilewright::sim
