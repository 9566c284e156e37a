// Times as they are told: the median of the samples and how sure it is.
#pragma once

#include <vector>

namespace tilewright::cli {

/// Median, and the order statistics that enclose it with about 95 %.
struct TimeSummary {
  double median_us = 0, low_us = 0, high_us = 0;
};
TimeSummary summarize(std::vector<double> samples_us);

}  // namespace tilewright::cli
