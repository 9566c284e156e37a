// What kernels use of the device, counted.
#pragma once

#include "sim/model/device_model.h"
#include "sim/report/prediction.h"
#include "sim/state/insn.h"
#include "sim/state/launch.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace tilewright::sim {

/// Counts of one instruction of the text, or sums over several.
struct Usage {
  std::uint64_t warp_instructions = 0;
  std::uint64_t thread_instructions = 0;  ///< lanes whose guard held
  std::uint64_t shared_accesses = 0;      ///< of warps, generic proxy
  std::uint64_t shared_wavefronts = 0;
  std::uint64_t shared_ideal_wavefronts = 0;  ///< without bank conflicts
  std::uint64_t shared_async_bytes = 0;       ///< by bulk copies and as operands of wgmma
  std::uint64_t global_accesses = 0;          ///< of warps, generic proxy and cp.async
  std::uint64_t global_sectors = 0;           ///< 32 bytes each
  std::uint64_t global_used_bytes = 0;        ///< of those sectors
  std::uint64_t bulk_bytes = 0;               ///< between L2 cache and chip, a multicast once
  std::uint64_t bulk_delivered_bytes = 0;     ///< a multicast at each of its receivers
  std::uint64_t local_bytes = 0;
  std::uint64_t atomics = 0;        ///< of lanes
  std::uint64_t barrier_waits = 0;  ///< of warps, mbarriers included
  std::uint64_t failed_polls = 0;   ///< test_wait and try_wait that said no
  double tensor_flop = 0;

  Usage& operator+=(const Usage& other);
};

inline constexpr std::size_t kNumInsnClasses = static_cast<std::size_t>(InsnClass::kOther) + 1;

/// "integer", "special function"
std::string_view name_of(InsnClass insn_class) noexcept;

/// A unit of the device and the time below which no launch can come on it.
struct Bound {
  std::string unit;
  double seconds = 0;
};

/// How many CTAs an SM holds, and what keeps more away.
struct Occupancy {
  std::uint32_t ctas_per_sm = 0;
  std::uint32_t warps_per_sm = 0;
  std::uint32_t max_warps_per_sm = 0;
  std::string limited_by;  ///< "registers", "shared memory", "threads" or "the number of CTAs"
};

/// One line of PTX.
struct LineUsage {
  Usage usage;
  InsnClass insn_class = InsnClass::kOther;
  std::string text;
  std::string source;  ///< "gemm.cu:17", "" if unknown
};

/// All launches of one kernel.
struct KernelUsage {
  std::string kernel, module;
  std::uint64_t num_launches = 0, num_ctas = 0;
  Dim3 grid, block, cluster;  ///< of the last launch, as what follows
  std::uint32_t dynamic_shared_bytes = 0, static_shared_bytes = 0, num_registers = 0;
  std::uint32_t local_bytes = 0;
  Occupancy occupancy;
  Usage total;
  std::array<Usage, kNumInsnClasses> by_class;
  std::map<std::string, double, std::less<>> tensor_flop;  ///< by type of operand A
  std::uint64_t touched_sectors = 0;                       ///< of global memory, once per launch
  std::map<std::uint32_t, LineUsage> lines;                ///< by line of PTX
  std::map<std::string, Usage> source_lines;               ///< by "file:line"
  std::vector<Bound> bounds;                               ///< summed over the launches
  std::optional<Prediction> prediction;                    ///< if the time was to be predicted
  std::vector<std::string> faults;

  /// Of the same kernel.
  void add(const KernelUsage& other);
};

/// The bounds of one launch, the largest first.
std::vector<Bound> bounds_of(const KernelUsage& usage, const DeviceModel& model);

Occupancy occupancy_of(const DeviceModel& model, const KernelInfo& kernel, const Launch& launch);

}  // namespace tilewright::sim
