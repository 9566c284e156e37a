// Plots with two logarithmic axes: SVG that takes its colours from the page.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace tilewright::cli {

struct LogSeries {
  enum class Look { kLine, kDashed, kFloor, kPoints };
  std::string name;
  int color = 0;  ///< number of a CSS class s0, s1, ...
  Look look = Look::kLine;
  std::vector<std::pair<double, double>> points = {};  ///< (x, y), all above 0
};

/// Lines over powers of two.
std::string plot_log(const std::vector<LogSeries>& series, const std::string& x_name,
                     const std::string& y_name);

}  // namespace tilewright::cli
