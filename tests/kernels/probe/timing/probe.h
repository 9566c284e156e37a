// Contract of the timing probes in this folder: short pieces of code between two readings of the
// clock, for the constants of the simulator's timing model. Recorded by
// tools/hardware/record_timing.cpp.
#pragma once

#include <cstdint>

namespace tilewright::kernels {

struct TimingProbeParams {
  /// [block][iteration][warp][marks]: low words of the SM's clock; 2 marks, begin and end, unless
  /// the probe says otherwise
  std::uint32_t* times;
  std::uint32_t* sink;    ///< [threads of the grid], for results that nobody reads
  std::uint32_t* memory;  ///< zeros
  std::uint64_t memory_bytes;
  std::uint32_t iterations;
  std::uint32_t stride;  ///< bytes, or what the probe makes of it
  std::uint32_t count;   ///< likewise
  std::uint32_t word;    ///< from which operands are made
  std::uint32_t never;   ///< a word that no result is
  alignas(64) std::uint8_t tensor_map[128];
};

/// Marks of a warp in timing_probe_wgmma_marks_*: one before and one after each product.
inline constexpr int kTimingProducts = 16;
/// Marks of timing_probe_copy_*: begin, all copies issued, and each arrival, of up to 8 copies.
inline constexpr int kTimingCopyMarks = 10;
inline constexpr int kTimingCopies = 8;
inline constexpr int kTimingCopyMaxBytes = 32 << 10;
/// Dynamic shared memory of the probes that have stages or matrices there
inline constexpr int kTimingSharedBytes = 200 << 10;
/// Instructions of one piece of timing_probe_cold_code, 16 bytes each, and its pieces
inline constexpr int kTimingColdInstructions = 2048;
inline constexpr int kTimingColdPieces = 8;
/// The same of timing_probe_cold_jumps, whose pieces are 1 KiB
inline constexpr int kTimingJumpInstructions = 48;
inline constexpr int kTimingJumpPieces = 128;

}  // namespace tilewright::kernels
