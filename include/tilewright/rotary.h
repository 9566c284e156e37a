// Rotary positions: which elements of a head turn together.
#pragma once

namespace tilewright {

/// Pairs of elements that one angle turns, of the first rotary_dim of a head.
enum class RotaryPairs {
  kNone,
  kInterleaved,  ///< neighbours: 2 i and 2 i + 1
  kHalves,       ///< i and i + rotary_dim / 2
};

}  // namespace tilewright
