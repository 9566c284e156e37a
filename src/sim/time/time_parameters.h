// What a device needs for each thing that a kernel does, in clocks of an SM: the constants of the
// timing model.
//
// All of them are facts of the device with a source (time_parameters.cpp). None belongs to a kernel
// or was fitted to one.
#pragma once

#include "sim/model/device_model.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tilewright::sim {

/// Clocks, unless a name says otherwise.
struct TimeParameters {
  // Issue: one warp instruction per clock and scheduler.
  double fma_interval = 0, fma_latency = 0;          ///< FADD, FMUL, FFMA
  double alu_interval = 0, alu_latency = 0;          ///< integers, logic, min and max, packing
  double special_interval = 0, special_latency = 0;  ///< ex2, rcp, sin: MUFU
  double double_interval = 0, double_latency = 0;
  /// By what factor an instruction keeps its unit longer while products of wgmma run
  double fma_beside_products = 1, alu_beside_products = 1, special_beside_products = 1;
  /// The same beside mma.sync of its scheduler, of what takes its unit one clock and of what takes
  /// two; and by how many clocks it holds those products up
  double fma_beside_mma_sync = 1, alu_beside_mma_sync = 1;
  double fma_delays_mma_sync = 0, alu_delays_mma_sync = 0;
  double uniform_latency = 0;  ///< of special registers and constants, by their counter
  double operand_read = 0;     ///< until a load, store or copy has read its registers
  double branch_redirect = 0;  ///< of a branch that is taken
  // Code: what an SM holds next to its schedulers, and behind that; and how long a line of 128
  // bytes takes from the second, and from L2.
  double code_bytes = 0, code_bytes_behind = 0;
  double code_line = 0, code_line_from_l2 = 0;
  double mma_sync_interval_scale = 0, mma_sync_latency = 0;

  // Shared memory: one wavefront of 128 bytes per clock.
  double shared_latency = 0, matrix_load_latency = 0, shuffle_latency = 0, shared_interval = 0;
  double shared_issue = 0;  ///< of one scheduler: between two loads, stores or shuffles

  // Tensor cores.
  double tensor_scale = 1;  ///< of the time of products; 0: they take none
  double wgmma_issue = 0;   ///< of a warp
  double wgmma_tail = 0;    ///< from the end of the last product to the end of the wait
  double wgmma_queued = 0;  ///< operations of an SM that are accepted ahead
  double tcgen05_issue = 0, tcgen05_alloc = 0;
  /// From the end of the last product to its commit's arrival, and what comes to it with A in
  /// shared memory, and of a pair of CTAs
  double tcgen05_tail = 0, tcgen05_shared_tail = 0, tcgen05_pair_tail = 0;
  /// Tensor Memory: of a quarter of its lanes, which the warps of one number modulo 4 share
  double tcgen05_access_latency = 0, tcgen05_load_bytes = 1, tcgen05_store_bytes = 1;

  // Asynchronous copies and barriers.
  double copy_issue = 0;        ///< of a warp: TMA
  double copy_latency = 0;      ///< beside that of L2 or HBM
  double copy_first_use = 0;    ///< of a tensor map by a CTA: it is fetched
  double mbarrier_issue = 0;    ///< arrive, expect_tx
  double mbarrier_wake = 0;     ///< from the end of a phase to the waiting warp
  double mbarrier_ready = 0;    ///< try_wait of a phase that is over
  double mbarrier_arrival = 0;  ///< from the arrival to the end of the phase
  double remote_arrival = 0;    ///< the same at another CTA of the cluster
  double barrier_release = 0;   ///< named barrier: from the last arrival to its release
  double barrier_per_warp = 0;  ///< and that for each warp
  double cluster_release = 0;   ///< likewise, of the cluster
  double proxy_fence = 0;       ///< fence.proxy.async
  /// A fence at the scope of the cluster or the GPU, the release of an arrival too: after stores,
  /// and without
  double memory_fence = 0, memory_fence_alone = 0;
  double fence_interval = 0;         ///< between two such fences of an SM
  double set_registers = 0;          ///< setmaxnreg
  double remote_shared_latency = 0;  ///< a load from another CTA of the cluster
  /// Of an SM and clock, to and from other CTAs of its cluster; how many bytes of stores wait
  double remote_store_bytes = 1, remote_load_bytes = 1, remote_stores_queued = 0;

  // Memory.
  double l1_latency = 0, l2_latency = 0, hbm_latency = 0, atomic_latency = 0;
  double hbm_shared_latency = 0;  ///< of a line that all SMs ask for at about the same time
  double l1_bytes = 0;            ///< that an SM keeps beside its shared memory, at most
  double hbm_spread = 0;          ///< of n lines of HBM the last is log2(n) times this later
  double sm_bytes = 0;            ///< per clock between an SM and the L2 cache
  double l2_bytes_per_clock = 0;  ///< all SMs together
  double hbm_bytes_per_clock = 0;
  /// Turning from reads to writes and back, as bytes for each byte that is written (or read, if
  /// those are fewer), at most for this part of all
  double hbm_turn = 0, hbm_turn_part = 0;
  /// What L2 holds, and how much of that a launch between two events finds written and not yet in
  /// HBM: what comes from there takes the place of some of it
  double l2_bytes = 0, dirty_bytes = 0;

  // Launches.
  double launch = 0;          ///< an empty kernel between two events, behind another one
  double graph_launch = 0;    ///< a launch of a graph behind another one
  double dependent_gain = 0;  ///< what a programmatic dependent launch spares
  /// Of that, from the end of the launch before to the first instruction of those CTAs that had no
  /// room beside it. What they do until they wait for that launch is spared, too.
  double dependent_start = 0;
  double cta_start = 0;  ///< from the end of a CTA to the next one's first instruction

  // The clock: at most, from the first product until so many clocks behind the last one, and how
  // much lower it is when tensor cores are busy all the time.
  double clock_hz = 0, tensor_clock_hz = 0, tensor_clock_drop_hz = 0;
  double tensor_clock_hold = 0;
};

/// The constants of the device. Those of devices other than the H200 and the B200 are of the
/// nearest of the two.
TimeParameters time_parameters(const DeviceModel& model);

/// Units that can be made infinitely fast.
std::span<const std::string_view> ideal_units() noexcept;

/// The constants with these units infinitely fast: "tensor,mufu". An empty list changes nothing.
/// Errors   InvalidArgument that names the word and what there is
TimeParameters with_ideal_units(TimeParameters parameters, std::string_view list);

}  // namespace tilewright::sim
