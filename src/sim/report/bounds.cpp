// The least time that each unit of the device needs for what a launch asks of it.
#include "sim/report/access_cost.h"
#include "sim/report/tensor_work.h"
#include "sim/report/usage.h"

#include <algorithm>

namespace tilewright::sim {

namespace {

double warps_of(const KernelUsage& usage, InsnClass insn_class) {
  return static_cast<double>(
      usage.by_class[static_cast<std::size_t>(insn_class)].warp_instructions);
}

/// Cycles of all tensor cores together; 0 for types without a known rate.
double tensor_cycles(const KernelUsage& usage, const TensorRates& rates) {
  double cycles = 0;
  for (const auto& [type, flop] : usage.tensor_flop) {
    const std::uint32_t rate = tensor_rate(rates, type);
    if (rate != 0) cycles += flop / rate;
  }
  return cycles;
}

}  // namespace

std::vector<Bound> bounds_of(const KernelUsage& usage, const DeviceModel& model) {
  const UnitRates& rates = model.rates;
  const Usage& total = usage.total;
  // A CTA stays on its SM: of a small grid most of the device sees nothing.
  const double sms = static_cast<double>(
      std::max<std::uint64_t>(1, std::min<std::uint64_t>(usage.num_ctas, model.num_sms)));
  const double clocks_per_second = 1e3 * model.clock_khz * sms;
  const auto seconds = [&](double work, double per_clock) {
    return work / (per_clock * clocks_per_second);
  };
  const double shared_wavefronts =
      static_cast<double>(total.shared_wavefronts) +
      static_cast<double>(total.shared_async_bytes) / rates.shared_bytes;
  // The way into each SM, which takes a multicast at every receiver.
  const double l2_bytes =
      static_cast<double>(total.global_sectors * kSectorBytes + total.bulk_delivered_bytes);
  const double fma_warps = warps_of(usage, InsnClass::kFloat) + warps_of(usage, InsnClass::kHalf);
  // ptxas removes most moves.
  const double issued =
      static_cast<double>(total.warp_instructions) - warps_of(usage, InsnClass::kMove);
  std::vector<Bound> bounds = {
      {"tensor", seconds(tensor_cycles(usage, rates.tensor), 1)},
      {"special function",
       seconds(warps_of(usage, InsnClass::kSpecialFunction) * kLanes, rates.special_lanes)},
      {"FMA", seconds(fma_warps * kLanes, rates.fma_lanes)},
      {"double", seconds(warps_of(usage, InsnClass::kDouble) * kLanes, rates.double_lanes)},
      {"shared memory", seconds(shared_wavefronts, 1)},
      {"L2 bytes", seconds(l2_bytes, rates.l2_bytes)},
      {"HBM bytes",
       static_cast<double>(usage.touched_sectors * kSectorBytes) / model.memory_bytes_per_second()},
      {"issue", seconds(issued, rates.issued_warps)}};
  std::ranges::stable_sort(bounds, std::greater<>(), &Bound::seconds);
  return bounds;
}

}  // namespace tilewright::sim
