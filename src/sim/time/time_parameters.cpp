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
// "weak": no measurement of an H200 is known; to be probed.
TimeParameters h200_parameters() {
  TimeParameters p;
  p.fma_interval = 1, p.fma_latency = 4;           // [H]
  p.alu_interval = 2, p.alu_latency = 4;           // [G] 64 lanes a clock
  p.special_interval = 8, p.special_latency = 19;  // [H] dependent chain 18.9
  p.double_interval = 2, p.double_latency = 8;     // [G] 64 lanes; latency weak
  // Weak: some 1024 bytes a clock and SM in a public configuration, half of it for accumulators.
  p.register_bytes = 256, p.tensor_register_bytes = 128;
  p.branch_redirect = 12;  // [H]
  // One m16n8k16 per 6 to 6.5 clocks and scheduler, where wgmma's rate would give 4. [D]
  p.mma_sync_interval_scale = 1.6, p.mma_sync_latency = 22;

  p.shared_latency = 29, p.matrix_load_latency = 33;  // [D] [R]
  p.shuffle_latency = 23;                             // weak: older parts
  p.shared_interval = 1;                              // [D] n-way conflicts take n

  p.wgmma_issue = 12;  // [H]
  p.wgmma_tail = 66;   // [H] 66 SS, 64 RS
  p.wgmma_queued = 6;  // weak

  p.copy_issue = 32;        // [H] elect and UTMALDG
  p.copy_latency = 100;     // [D] TMA beside a load
  p.copy_first_use = 600;   // weak: 1346 clocks for 1 KiB from HBM [H] less 709 [D]
  p.mbarrier_issue = 6;     // [H]
  p.mbarrier_arrival = 16;  // [H] 52 from an arrival to the waiting warp, less the next
  p.mbarrier_wake = 36;     // [H]
  p.mbarrier_ready = 36;    // [H] 36 to 43
  p.remote_arrival = 176;   // [H] 212 to the owner's wait
  p.barrier_release = 22, p.barrier_per_warp = 2;  // [B3]; [H] has 37 for eight warps
  p.cluster_release = 340;                         // weak: [B3] 373 to 380 for cluster.sync
  p.proxy_fence = 10;                              // [H] 8 to 13 alone
  p.memory_fence = 500;                            // weak: a round to L2
  p.set_registers = 30;                            // weak
  p.remote_shared_latency = 193;                   // [D]

  p.l1_latency = 33, p.l2_latency = 270, p.hbm_latency = 610;  // [D] [R]
  p.atomic_latency = 500;                                      // weak
  p.l1_bytes = 256 << 10;                                      // data sheet, shared memory included
  p.sm_bytes = 64;                                             // [D]
  p.l2_bytes_per_clock = 9.7e12 / 1.98e9;                      // [R] up to 40 MB
  p.hbm_bytes_per_clock = 4.62e12 / 1.98e9;                    // [o] sustained in decode

  p.launch = 4400;          // [B3] 2.2 us between two events
  p.dependent_gain = 1500;  // [B3] 0.5 to 1 us
  p.cta_start = 1100;       // [H] 1000 to 1200
  return p;
}

// What is not named is taken as on the H200.
TimeParameters b200_parameters() {
  TimeParameters p = h200_parameters();
  p.special_latency = 18;
  p.tcgen05_issue = 12;            // weak
  p.tcgen05_tail = 104;            // [B2] with A in Tensor Memory; 120 to 136 from shared memory
  p.tcgen05_access_latency = 160;  // weak: 120 to 200 in notes of practitioners
  p.tcgen05_alloc = 253;           // [B3]
  p.cluster_release = 340;         // [B3]
  p.l2_latency = 298;              // near half; the far one 300 more
  p.hbm_latency = 813;             // [B2] TMA of 1 KB takes 1413
  p.l2_bytes_per_clock = 13.5e12 / 1.965e9;  // [B3]
  p.hbm_bytes_per_clock = 7.2e12 / 1.965e9;  // [B2]
  return p;
}

struct IdealUnit {
  std::string_view name;
  void (*apply)(TimeParameters&);
};

constexpr auto kIdealUnits = std::to_array<IdealUnit>({
    {"tensor",
     [](TimeParameters& p) {
       p.tensor_scale = p.tensor_register_bytes = 0;
       p.wgmma_issue = p.wgmma_tail = p.tcgen05_issue = p.tcgen05_tail = kFast;
       p.wgmma_queued = 1e9;
       p.mma_sync_interval_scale = p.mma_sync_latency = kFast;
     }},
    {"mufu", [](TimeParameters& p) { p.special_interval = p.special_latency = kFast; }},
    {"fma", [](TimeParameters& p) { p.fma_interval = p.fma_latency = kFast; }},
    {"alu", [](TimeParameters& p) { p.alu_interval = p.alu_latency = kFast; }},
    {"shared",
     [](TimeParameters& p) {
       p.shared_latency = p.matrix_load_latency = p.shuffle_latency = p.shared_interval = kFast;
     }},
    {"l2",
     [](TimeParameters& p) {
       p.l2_latency = kFast;
       p.sm_bytes = p.l2_bytes_per_clock = kFastBytes;
     }},
    {"hbm",
     [](TimeParameters& p) {
       p.hbm_latency = p.l2_latency;
       p.hbm_bytes_per_clock = kFastBytes;
     }},
    {"tma", [](TimeParameters& p) { p.copy_issue = p.copy_latency = p.copy_first_use = kFast; }},
    {"barriers",
     [](TimeParameters& p) {
       p.mbarrier_issue = p.mbarrier_arrival = p.mbarrier_wake = p.mbarrier_ready = kFast;
       p.remote_arrival = p.barrier_release = p.barrier_per_warp = p.cluster_release = kFast;
       p.proxy_fence = p.memory_fence = kFast;
     }},
    {"launch", [](TimeParameters& p) { p.launch = p.cta_start = p.dependent_gain = 0; }},
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
