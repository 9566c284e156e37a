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
  std::string device;                            ///< that it needs; "": any from sm_90a on
};

inline constexpr std::uint32_t kBenchThreads = 128;  // of a CTA
inline constexpr std::uint32_t kBenchBytesPerCta = 64 << 10;

/// Float, integer, shared and global memory, special functions, mma.sync, wgmma, tcgen05.mma.
std::vector<BenchKernel> bench_kernels();
/// The part of them that runs on a B200 only.
std::vector<BenchKernel> blackwell_bench_kernels();

}  // namespace tilewright::cli
