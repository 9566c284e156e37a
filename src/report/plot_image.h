// A plot of a page as a picture of its own.
#pragma once

#include <string>

namespace tilewright::cli {

/// A file for documents: margins, a heading, a background, colours for light and dark; no script
/// and no fonts that a reader may not have. `plot`: SVG that takes its colours from the page.
std::string plot_image(const std::string& plot, const std::string& heading);

}  // namespace tilewright::cli
