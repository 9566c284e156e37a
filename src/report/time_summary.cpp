#include "report/time_summary.h"

#include <algorithm>
#include <cmath>

namespace tilewright::cli {

TimeSummary summarize(std::vector<double> samples) {
  if (samples.empty()) return {};
  std::ranges::sort(samples);
  const auto count = static_cast<double>(samples.size());
  // Binomial with p = 1/2: the median lies between these in 95 of 100 cases.
  const double reach = 0.98 * std::sqrt(count);
  const auto at = [&](double position) {
    return samples[static_cast<std::size_t>(std::clamp(position, 0.0, count - 1))];
  };
  const std::size_t middle = samples.size() / 2;
  const double median =
      samples.size() % 2 == 1 ? samples[middle] : (samples[middle - 1] + samples[middle]) / 2;
  return {median, at(std::floor(count / 2 - reach)), at(std::ceil(count / 2 + reach))};
}

}  // namespace tilewright::cli
