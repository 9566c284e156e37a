// The ladder's plots as pictures of their own: what the report draws, and files for documents.
#pragma once

#include "bench/ladder_upper.h"

#include <string>
#include <vector>

namespace tilewright::cli {

/// Where bars are drawn: the longest sequences among those that most rungs ran. Peers may have run
/// longer ones.
std::size_t shown_length(const LadderView& view, const LadderGroup& group);

/// A bar for each rung at that length: TFLOP/s, or without times the bound of its busiest unit.
/// SVG that takes its colours from the page.
std::string ladder_bars(const LadderView& view, const LadderGroup& group);

struct LadderImage {
  std::string name;  ///< "rungs-d128-full.svg"
  std::string svg;
};

/// Of every group a picture of the bars, and where there are times one of TFLOP/s over lengths,
/// both axes logarithmic. Each is a whole file: colours for light and dark, no script, no fonts
/// that a reader may not have.
std::vector<LadderImage> ladder_images(const LadderView& view);

}  // namespace tilewright::cli
