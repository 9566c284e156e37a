// The plots of the ladder's report: SVG that takes its colours from the page.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::cli {

struct PlotSeries {
  std::string name;
  int color = 0;  ///< number of a CSS class s0, s1, ...
  bool is_dashed = false;
  std::vector<double> y;  ///< one for each x; <= 0: none
};

/// Lines over equally spaced labels; y from 0. A ceiling of 0 draws none.
std::string plot_lines(const std::vector<std::string>& labels,
                       const std::vector<PlotSeries>& series, const std::string& unit,
                       double ceiling);

struct PlotBar {
  std::string label, note;  ///< before and behind the bar
  double value = 0;         ///< > 0
  int color = 0;
  std::string idea;  ///< below the bar
};

/// Horizontal bars on a logarithmic scale.
std::string plot_bars(const std::vector<PlotBar>& bars, const std::string& unit);

}  // namespace tilewright::cli
