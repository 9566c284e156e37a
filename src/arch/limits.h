// What an SM of each target has. Facts only; a device model or a kernel picks what it
// needs. Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability";
// PTX ISA.
#pragma once

#include <cstdint>

namespace tilewright::arch {

inline constexpr int kWarpThreads = 32;
inline constexpr int kWarpgroupWarps = 4;
inline constexpr int kWarpgroupThreads = kWarpThreads * kWarpgroupWarps;

struct Limits {
  const char* target;                 ///< as ptxas spells it
  int shared_bytes_per_sm;            ///< shared memory of an SM
  int shared_bytes_per_cta;           ///< most a CTA may opt in to, static and dynamic together
  int shared_bytes_reserved_per_cta;  ///< taken by the system in each CTA
  int registers_per_sm;               ///< 32-bit registers
  int max_registers_per_thread;
  int max_threads_per_sm;
  int max_threads_per_cta;
  int max_ctas_per_sm;
  int named_barriers_per_cta;
  int max_cluster_ctas_portable;
  int max_cluster_ctas;  ///< with the non-portable opt-in
  int tmem_lanes;        ///< 0 where there is no Tensor Memory
  int tmem_columns;      ///< of 32 bits
};

inline constexpr Limits kSm90a = {"sm_90a", 233472, 232448, 1024, 65536, 255, 2048,
                                  1024,     32,     16,     8,    16,    0,   0};
inline constexpr Limits kSm100a = {"sm_100a", 233472, 232448, 1024, 65536, 255, 2048,
                                   1024,      32,     16,     8,    16,    128, 512};
inline constexpr Limits kSm103a = {"sm_103a", 233472, 232448, 1024, 65536, 255, 2048,
                                   1024,      32,     16,     8,    16,    128, 512};

/// Asynchronous copies between global and shared memory by tensor map.
inline constexpr int kTensorMapMaxRank = 5;
inline constexpr int kTensorMapMaxBox = 256;      ///< elements along each dimension of a box
inline constexpr int kTensorMapStrideBytes = 16;  ///< global strides are multiples of this
inline constexpr int kTensorMapBytes = 128;       ///< size of the opaque object
inline constexpr int kTensorMapAlignment = 64;

}  // namespace tilewright::arch
