// Plots with two logarithmic axes: SVG that takes its colours from the page.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tilewright::cli {

struct LogSeries {
  enum class Look { kLine, kDashed, kFloor, kPoints, kMarked };  ///< kMarked: a line with points
  std::string name;  ///< stands at the right; empty: nowhere
  int color = 0;     ///< number of a CSS class s0, s1, ...
  Look look = Look::kLine;
  std::vector<std::pair<double, double>> points = {};  ///< (x, y), all above 0
};

/// Lines over powers of two. `right`: what the names have of the width.
std::string plot_log(const std::vector<LogSeries>& series, const std::string& x_name,
                     const std::string& y_name, double right = 160);

}  // namespace tilewright::cli
