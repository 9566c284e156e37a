#include "sim/report/usage.h"

#include "sim/state/occupancy.h"

#include <algorithm>

namespace tilewright::sim {

Usage& Usage::operator+=(const Usage& other) {
  warp_instructions += other.warp_instructions;
  thread_instructions += other.thread_instructions;
  shared_accesses += other.shared_accesses;
  shared_wavefronts += other.shared_wavefronts;
  shared_ideal_wavefronts += other.shared_ideal_wavefronts;
  shared_async_bytes += other.shared_async_bytes;
  global_accesses += other.global_accesses;
  global_sectors += other.global_sectors;
  global_used_bytes += other.global_used_bytes;
  bulk_bytes += other.bulk_bytes;
  bulk_delivered_bytes += other.bulk_delivered_bytes;
  local_bytes += other.local_bytes;
  atomics += other.atomics;
  barrier_waits += other.barrier_waits;
  failed_polls += other.failed_polls;
  tensor_flop += other.tensor_flop;
  return *this;
}

std::string_view name_of(InsnClass insn_class) noexcept {
  constexpr std::array<std::string_view, kNumInsnClasses> kNames = {
      "integer", "float",     "half",    "double", "convert", "special function",
      "move",    "predicate", "control", "load",   "store",   "atomic",
      "shuffle", "barrier",   "async",   "tensor", "other"};
  return kNames[static_cast<std::size_t>(insn_class)];
}

void KernelUsage::add(const KernelUsage& other) {
  num_launches += other.num_launches;
  num_ctas += other.num_ctas;
  grid = other.grid, block = other.block, cluster = other.cluster;
  dynamic_shared_bytes = other.dynamic_shared_bytes;
  static_shared_bytes = other.static_shared_bytes;
  num_registers = other.num_registers;
  local_bytes = other.local_bytes;
  occupancy = other.occupancy;
  total += other.total;
  for (std::size_t i = 0; i < by_class.size(); ++i) by_class[i] += other.by_class[i];
  for (const auto& [type, flop] : other.tensor_flop) tensor_flop[type] += flop;
  touched_sectors += other.touched_sectors;
  for (const auto& [number, line] : other.lines) {
    LineUsage& mine = lines[number];
    const Usage sum = mine.usage += line.usage;
    mine = line;
    mine.usage = sum;
  }
  for (const auto& [place, usage] : other.source_lines) source_lines[place] += usage;
  for (const Bound& bound : other.bounds) {
    const auto at = std::ranges::find(bounds, bound.unit, &Bound::unit);
    if (at == bounds.end()) {
      bounds.push_back(bound);
    } else {
      at->seconds += bound.seconds;
    }
  }
  std::ranges::stable_sort(bounds, std::greater<>(), &Bound::seconds);
  if (prediction && other.prediction) prediction->add(*other.prediction);
  faults.insert(faults.end(), other.faults.begin(), other.faults.end());
}

Occupancy occupancy_of(const DeviceModel& model, const KernelInfo& kernel, const Launch& launch) {
  const auto threads = static_cast<std::uint32_t>(launch.block.count());
  Occupancy out;
  out.ctas_per_sm = max_active_ctas_per_sm(model, kernel, threads, launch.dynamic_shared_bytes);
  out.warps_per_sm = out.ctas_per_sm * ((threads + kLanes - 1) / kLanes);
  out.max_warps_per_sm = model.max_threads_per_sm / kLanes;
  KernelInfo fewer_registers = kernel;
  fewer_registers.num_registers = 0;
  KernelInfo less_shared = kernel;
  less_shared.static_shared_bytes = 0;
  if (max_active_ctas_per_sm(model, fewer_registers, threads, launch.dynamic_shared_bytes) >
      out.ctas_per_sm) {
    out.limited_by = "registers";
  } else if (max_active_ctas_per_sm(model, less_shared, threads, 0) > out.ctas_per_sm) {
    out.limited_by = "shared memory";
  } else if (out.ctas_per_sm == model.max_ctas_per_sm) {
    out.limited_by = "the number of CTAs";
  } else {
    out.limited_by = "threads";
  }
  return out;
}

}  // namespace tilewright::sim
