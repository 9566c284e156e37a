// Contract of the histogram: counts of byte values, first per CTA in shared memory, then in global
// memory, with atomics of several kinds on the way.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

inline constexpr int kHistogramBins = 256;

struct HistogramParams {
  const std::uint8_t* values;     ///< [count]
  std::uint32_t* counts;          ///< [bins], added to
  float* weights;                 ///< [bins], weight 0.5 per value added to
  std::uint32_t* last_index;      ///< [bins], maximum with the indices of the value
  std::uint32_t* first_index;     ///< [bins], minimum with the indices of the value
  unsigned long long* index_sum;  ///< [1], sum of (index + 1) * value added to
  std::uint32_t* num_finished;    ///< [1] CTAs, starts at 0
  std::uint32_t* total;           ///< [1] sum of counts, as the CTA that finishes last sees it
  std::uint32_t count;
};

/// Any grid; the threads stride over the values.
inline constexpr int kHistogramThreads = 256;

}  // namespace tilewright::kernels
