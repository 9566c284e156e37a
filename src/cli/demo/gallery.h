// The pictures of docs/01-layouts: what they show and in which order.
#pragma once

#include "layout/draw.h"

#include <string>
#include <vector>

namespace tilewright::cli {

struct Picture {
  std::string file;  ///< "01-row-major.svg"
  std::string title;
  std::string explanation;  ///< a paragraph
  std::vector<Drawing> drawings;
};

const std::vector<Picture>& gallery();

/// Writes every picture as SVG and an index.html that shows them all. Returns the path of the
/// index.
std::string write_gallery(const std::string& folder, bool with_index);

}  // namespace tilewright::cli
