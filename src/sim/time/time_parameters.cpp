#include "sim/time/time_parameters.h"

#include "base/error.h"
#include "base/quote.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace tilewright::sim {

namespace {

constexpr double kFast = 1e-3;      ///< clocks of what takes no time
constexpr double kFastBytes = 1e9;  ///< bytes per clock of what takes no time

// Sources, as named beside the values:
//   [H]  probes of an H100 or H200 in public configurations of simulators and their comments
//   [D]  "Dissecting the NVIDIA Hopper Architecture through Microbenchmarking", 2402.13499, and its
//        repository
//   [R]  RRZE gpu-benches (H200, GH200)
//   [G]  CUDA programming guide, throughput of native arithmetic instructions
//   [B3] public notes of probes on a B300, where the unit is the same
//   [B2] SemiAnalysis microbench-blackwell (B200)
//   [o]  own logs in bench/results
//   [P]  our probes (tools/hardware/record_timing.cpp) on an H200, tests/golden/hardware/
//        h200_timing.json. Tests hold the constants to it
//   [P1] the same on an H100: h100_power.json, h100_shared.json, h100_few_tokens.json. SMs, L2 and
//        the highest clock are the H200's; memory is not, and no constant of memory is from there
// "weak": no measurement of an H200 is known; to be probed. bench/calibration.json names the probes
// of each constant, and the row of a log behind [o].
TimeParameters h200_parameters() {
  TimeParameters p;
  p.fma_interval = 1, p.fma_latency = 4;           // [P]
  p.alu_interval = 2, p.alu_latency = 4;           // [P]
  p.special_interval = 8, p.special_latency = 17;  // [P]
  p.double_interval = 2, p.double_latency = 8;     // [G] 64 lanes; latency weak
  // [P] wgmma_beside_*. FMA is weak: from m64n256k16 alone,
  // since sums without pauses keep products
  // from being issued at all.
  p.fma_beside_products = 2.9, p.alu_beside_products = 1.6, p.special_beside_products = 1.25;
  // [P1] mma_sync_beside_*
  p.fma_beside_mma_sync = 1, p.alu_beside_mma_sync = 1.35;
  p.fma_delays_mma_sync = 1.08, p.alu_delays_mma_sync = 0.7;
  p.uniform_latency = 20, p.operand_read = 16;  // weak
  p.branch_redirect = 12;                       // [H]
  // [P] cold_code: straight code of 64 KiB, again and again, takes 2.3 clocks an instruction, of
  // 256 KiB 5.4; loops of 24 KiB take one.
  p.code_bytes = 32 << 10, p.code_bytes_behind = 128 << 10;
  p.code_line = 18, p.code_line_from_l2 = 44;
  // [P1] mma_sync_x8, 12 warps: one m16n8k16 in 7 clocks of a scheduler, where wgmma's rate would
  // give 4; a chain of them 24.
  p.mma_sync_interval_scale = 1.75, p.mma_sync_latency = 24;

  p.shared_latency = 25, p.matrix_load_latency = 31;  // [P] less the addition of the chain
  p.shuffle_latency = 24;                             // [P]
  p.shared_issue = 3.9;                               // [P] stores 3.8, shuffles 4.06
  p.shared_interval = 1;                              // [D] n-way conflicts take n

  p.wgmma_issue = 12;  // [H]
  p.wgmma_tail = 65;   // [P] a product alone
  p.wgmma_queued = 8;  // [P] the ninth waits

  p.copy_issue = 32;        // [H] elect and UTMALDG
  p.copy_latency = 140;     // [P] TMA beside a load, less its issue
  p.copy_first_use = 80;    // [P]
  p.mbarrier_issue = 6;     // [H]
  p.mbarrier_arrival = 20;  // [P] together with the next: 98 a hand-over, code included
  p.mbarrier_wake = 56;     // [P]
  p.mbarrier_ready = 36;    // [P] 42 with its branch
  p.remote_arrival = 176;   // [H] 212 to the owner's wait
  p.barrier_release = 12.3, p.barrier_per_warp = 2.1;  // [P]
  p.cluster_release = 62;                              // [P] relaxed: without a fence
  p.proxy_fence = 9;                                   // [P] alone
  // [P] A release at the scope of a cluster is the fence of the GPU (MEMBAR.ALL.GPU): a barrier of
  // the cluster takes 364 clocks with it, 82 without. After stores the fence waits for them.
  p.memory_fence = 516, p.memory_fence_alone = 234;
  p.fence_interval = 8.6;         // [P] cluster_barrier, 12 warps less 4, and less the same relaxed
  p.set_registers = 50;           // [P]
  p.remote_shared_latency = 210;  // [P] less the addition of the chain
  p.remote_store_bytes = 22, p.remote_load_bytes = 16.5;  // [P1] remote_stores, [P] remote_loads
  p.remote_stores_queued = 8 << 10;  // [P1] a warp stores 16 KiB in 513 clocks, at 22 bytes 745

  p.l1_latency = 34, p.l2_latency = 280, p.hbm_latency = 685;  // [P] less the branch that waits
  // [P] A copy from HBM less the same from L2: 510 clocks of 256 bytes, 700 of 32 KiB. One load
  // takes 531 to 1280 (99 of 100), so that the last of many is late.
  p.hbm_spread = 37;
  // [P] memory_loads of 64 MiB by all SMs, the same lines: 609 clocks, where one SM takes 706, and
  // L2 300; as much more than l2_latency
  p.hbm_shared_latency = 589;
  p.atomic_latency = 588;                    // [P]
  p.l1_bytes = 256 << 10;                    // data sheet, shared memory included
  p.sm_bytes = 110;                          // [P] TMA; loads 93
  p.l2_bytes_per_clock = 8.5e12 / 1.98e9;    // [P] TMA, 16 MiB; loads as much
  p.hbm_bytes_per_clock = 4.62e12 / 1.98e9;  // [o] sustained in decode
  // [P] copy_pages: 138 MB more of shuffled pages take 31.3 us, with 4.2 MB of results 34.0
  p.hbm_turn = 2, p.hbm_turn_part = 0.057;
  // [P] memory_stream of 64, 256, 1024 MiB takes 3.5, 9, 8.5 us longer behind lines that were
  // written
  p.l2_bytes = 60 << 20, p.dirty_bytes = 40e6;

  // [P] memory_stream of nothing behind other memory takes 5.9 us; on an H100 1.6 us more than an
  // empty kernel there (cold_launch)
  p.launch = 8500;
  p.graph_launch = 1270;    // [P] of an empty kernel, in a graph of 100
  p.dependent_gain = 230;   // [P] in a graph
  p.dependent_start = 490;  // [P1] work_around_wait, 132 CTAs: 4000 clocks before the wait
  p.cta_start = 315;        // [P]
  // [P1] power: without products the clock is the highest one, with them at most the boost clock of
  // the data sheet, and lower the more of them there are. The products of kernels falter again and
  // again, as those of the probes with sleeps do: busy for 0.54 and 0.87 of the time they run at
  // 1721 and 1633 MHz (means of three forms, of two sleeps at 0.54). With products for 0.55 us of
  // each 4.1 us it is 1873: the clock stays low for 1.6 us behind them.
  p.tensor_clock_hz = 1.83e9, p.tensor_clock_drop_hz = 0.21e9, p.tensor_clock_hold = 3200;
  return p;
}

// What is not named is taken as on the H200.
TimeParameters b200_parameters() {
  TimeParameters p = h200_parameters();
  p.special_latency = 18;
  p.tcgen05_issue = 12;  // weak
  // [B2] n / 2 + 104 from the issue to the end of the wait for it, + 136 with A in shared memory,
  // + 138 and + 170 of a pair
  p.tcgen05_tail = 104 - p.mbarrier_wake;
  p.tcgen05_shared_tail = 32, p.tcgen05_pair_tail = 34;
  p.tcgen05_access_latency = 160;            // weak: 120 to 200 in notes of practitioners
  p.tcgen05_load_bytes = 53;                 // [B3] a warp; 211 an SM
  p.tcgen05_store_bytes = 97;                // [B3] 330 to 450 an SM
  p.tcgen05_alloc = 253;                     // [B3]
  p.cluster_release = 102;                   // [B3] relaxed; 340 to 380 with its fence
  p.l2_latency = 298;                        // near half; the far one 300 more
  p.hbm_latency = 813;                       // [B2] TMA of 1 KB takes 1413
  p.hbm_shared_latency = 717;                // as much less as on the H200
  p.l2_bytes_per_clock = 13.5e12 / 1.965e9;  // [B3]
  p.hbm_bytes_per_clock = 7.2e12 / 1.965e9;  // [B2]
  p.tensor_clock_hz = 1e12, p.tensor_clock_drop_hz = 0;  // not known
  return p;
}

struct IdealUnit {
  std::string_view name;
  void (*apply)(TimeParameters&);
};

constexpr auto kIdealUnits = std::to_array<IdealUnit>({
    {"tensor",
     [](TimeParameters& p) {
       p.tensor_scale = 0;
       p.fma_beside_products = p.alu_beside_products = p.special_beside_products = 1;
       p.wgmma_issue = p.wgmma_tail = p.tcgen05_issue = p.tcgen05_tail = kFast;
       p.tcgen05_shared_tail = p.tcgen05_pair_tail = kFast;
       p.wgmma_queued = 1e9;
       p.mma_sync_interval_scale = p.mma_sync_latency = kFast;
       p.fma_beside_mma_sync = p.alu_beside_mma_sync = 1;
       p.fma_delays_mma_sync = p.alu_delays_mma_sync = 0;
     }},
    {"mufu", [](TimeParameters& p) { p.special_interval = p.special_latency = kFast; }},
    {"fma", [](TimeParameters& p) { p.fma_interval = p.fma_latency = kFast; }},
    {"alu", [](TimeParameters& p) { p.alu_interval = p.alu_latency = kFast; }},
    {"shared",
     [](TimeParameters& p) {
       p.shared_latency = p.matrix_load_latency = p.shuffle_latency = p.shared_interval = kFast;
       p.shared_issue = kFast;
       p.remote_store_bytes = p.remote_load_bytes = kFastBytes;
     }},
    {"l2",
     [](TimeParameters& p) {
       p.l2_latency = kFast;
       p.sm_bytes = p.l2_bytes_per_clock = kFastBytes;
     }},
    {"hbm",
     [](TimeParameters& p) {
       p.hbm_latency = p.hbm_shared_latency = p.l2_latency;
       p.hbm_spread = p.hbm_turn = 0;
       p.hbm_bytes_per_clock = kFastBytes;
     }},
    {"tma", [](TimeParameters& p) { p.copy_issue = p.copy_latency = p.copy_first_use = kFast; }},
    {"barriers",
     [](TimeParameters& p) {
       p.mbarrier_issue = p.mbarrier_arrival = p.mbarrier_wake = p.mbarrier_ready = kFast;
       p.remote_arrival = p.barrier_release = p.barrier_per_warp = p.cluster_release = kFast;
       p.proxy_fence = p.memory_fence = p.memory_fence_alone = p.fence_interval = kFast;
     }},
    {"launch",
     [](TimeParameters& p) {
       p.launch = p.graph_launch = p.cta_start = p.dependent_gain = p.dependent_start = 0;
     }},
    {"code", [](TimeParameters& p) { p.code_line = p.code_line_from_l2 = 0; }},
});

constexpr auto kIdealNames = [] {
  std::array<std::string_view, kIdealUnits.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kIdealUnits[i].name;
  return names;
}();

}  // namespace

TimeParameters time_parameters(const DeviceModel& model) {
  TimeParameters p = model.compute_capability >= 100 ? b200_parameters() : h200_parameters();
  p.special_interval = 32.0 * 4 / model.rates.special_lanes;
  p.clock_hz = 1e3 * model.clock_khz;
  p.tensor_clock_hz = std::min(p.tensor_clock_hz, p.clock_hz);
  return p;
}

std::span<const std::string_view> ideal_units() noexcept {
  return kIdealNames;
}

TimeParameters with_ideal_units(TimeParameters parameters, std::string_view list) {
  while (!list.empty()) {
    const std::size_t comma = std::min(list.find(','), list.size());
    const std::string_view word = list.substr(0, comma);
    list.remove_prefix(std::min(comma + 1, list.size()));
    const auto* const unit = std::ranges::find(kIdealUnits, word, &IdealUnit::name);
    require(unit != kIdealUnits.end(), ErrorKind::kInvalidArgument,
            "{}: there is no such unit; expected some of {}, with commas between", quote(word),
            fmt::join(kIdealNames, ", "));
    unit->apply(parameters);
  }
  return parameters;
}

}  // namespace tilewright::sim
