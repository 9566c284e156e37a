// Rotary positions: which elements of a head turn together, and the angles by which they turn.
#pragma once

#include <cstdint>

namespace tilewright {

/// Pairs of elements that one angle turns, of the first rotary_dim of a head.
enum class RotaryPairs {
  kNone,
  kInterleaved,  ///< neighbours: 2 i and 2 i + 1
  kHalves,       ///< i and i + rotary_dim / 2
};

/// Cosines and sines of the angle of each pair at positions 0, 1, .., in device memory:
///
///   (x, y) -> (x cos - y sin, x sin + y cos)    of pair i < rotary_dim / 2 at its position
///
/// Layout   fp32, contiguous. One table, `angles`: of each position the cosines, then the sines.
///          Or two, `cos` and `sin`. An operator says which of the two it reads; its run() refuses
///          the other, because a copy of the table would cost more than the call
struct RotaryTable {
  const float* angles = nullptr;  ///< [positions, rotary_dim]
  const float* cos = nullptr;     ///< [positions, rotary_dim / 2]
  const float* sin = nullptr;     ///< [positions, rotary_dim / 2]
  /// Rows. Where the problem states their number: 0, or at least that many.
  std::int64_t positions = 0;
};

}  // namespace tilewright
