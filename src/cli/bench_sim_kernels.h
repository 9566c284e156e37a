// The kernels of `bench sim`: PTX text with one entry, bench(data, iterations).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::cli {

struct BenchKernel {
  std::string name;
  std::string ptx;
  std::uint32_t instructions_per_iteration = 0;  ///< of a thread, the loop's own included
  double flop_per_iteration = 0;                 ///< of a CTA, by tensor cores; 0 for the others
};

inline constexpr std::uint32_t kBenchThreads = 128;  // of a CTA
inline constexpr std::uint32_t kBenchBytesPerCta = 64 << 10;

/// Float, integer, shared and global memory, special functions, mma.sync, wgmma.
std::vector<BenchKernel> bench_kernels();

}  // namespace tilewright::cli
