#include "sim/report/usage_observer.h"

#include "sim/report/access_cost.h"

#include <algorithm>
#include <atomic>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::size_t kMostChars = 120;  // of an instruction

std::string source_of(const Module& module, const Instruction& instruction) {
  const std::string_view file = module.file_name(instruction.loc.file);
  return file.empty() ? std::string() : fmt::format("{}:{}", file, instruction.loc.line);
}

std::uint64_t next_id() noexcept {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

}  // namespace

UsageObserver::UsageObserver(const KernelCode& code)
    : code_(code),
      id_(next_id()),
      classes_(code.places.size(), InsnClass::kOther),
      tensor_work_(code.places.size()),
      is_first_(code.insns.size()) {
  std::vector<bool> is_seen(code.places.size());
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    const std::uint32_t syntax = code.insns[i].syntax;
    const Instruction* instruction = code.places[syntax].syntax;
    if (instruction == nullptr || is_seen[syntax]) continue;
    is_seen[syntax] = true;
    is_first_[i] = 1;
    classes_[syntax] = code.insns[i].insn_class;
    tensor_work_[syntax] = tensor_work(*instruction);
  }
}

UsageObserver::Shard& UsageObserver::shard() {
  thread_local std::uint64_t owner = 0;
  thread_local Shard* mine = nullptr;
  if (owner == id_) return *mine;
  const std::lock_guard lock(mutex_);
  shards_.push_back(std::make_unique<Shard>());
  mine = shards_.back().get();
  mine->usages.resize(code_.places.size());
  owner = id_;
  return *mine;
}

void UsageObserver::executing(Warp& warp, const Insn& insn, std::uint32_t active) {
  Shard& mine = shard();
  mine.has_waited = mine.has_polled = false;
  // An instruction that waited runs again; it is one all the same.
  if (warp.is_resumed || is_first_[static_cast<std::size_t>(&insn - code_.insns.data())] == 0) {
    return;
  }
  Usage& counts = mine.usages[insn.syntax];
  ++counts.warp_instructions;
  counts.thread_instructions += static_cast<std::uint64_t>(std::popcount(active));
  const TensorWork& work = tensor_work_[insn.syntax];
  counts.tensor_flop += work.flop_per_warp;
  counts.shared_async_bytes += work.shared_bytes;
}

void UsageObserver::shared_access(Warp&, const Insn& insn, const WarpAccess& access) {
  Usage& counts = shard().usages[insn.syntax];
  const SharedCost cost = shared_cost(access);
  ++counts.shared_accesses;
  counts.shared_wavefronts += cost.wavefronts;
  counts.shared_ideal_wavefronts += cost.ideal;
  if (access.kind == AccessKind::kAtomic) {
    counts.atomics += static_cast<std::uint64_t>(std::popcount(access.lanes));
  }
}

void UsageObserver::Shard::add_global(Usage& counts, const WarpAccess& access) {
  const GlobalCost cost = global_cost(access);
  ++counts.global_accesses;
  counts.global_sectors += cost.sectors;
  counts.global_used_bytes += cost.bytes;
  for (std::uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
    footprint.add(access.addresses[std::countr_zero(rest)], access.bytes);
  }
}

void UsageObserver::global_access(Warp&, const Insn& insn, const WarpAccess& access) {
  Shard& mine = shard();
  Usage& counts = mine.usages[insn.syntax];
  mine.add_global(counts, access);
  if (access.kind == AccessKind::kAtomic) {
    counts.atomics += static_cast<std::uint64_t>(std::popcount(access.lanes));
  }
}

void UsageObserver::local_access(Warp&, const Insn& insn, const WarpAccess& access) {
  shard().usages[insn.syntax].local_bytes +=
      static_cast<std::uint64_t>(std::popcount(access.lanes)) * access.bytes;
}

std::uint64_t UsageObserver::async_issued(Warp&, const Insn& insn,
                                          const AsyncOperation& operation) {
  if (operation.kind == AsyncKind::kTensorMapRead) return 0;
  if (operation.kind == AsyncKind::kWgmma) return 0;  // its operands are known from the text
  Shard& mine = shard();
  Usage& counts = mine.usages[insn.syntax];
  std::array<std::uint64_t, kLanes> addresses{};
  WarpAccess access;
  access.addresses = addresses.data();
  std::uint64_t global_bytes = 0, written_bytes = 0;
  for (const AsyncRange& range : operation.ranges) {
    if (range.kind != AccessKind::kRead) written_bytes += range.bytes;
    if (range.is_shared) {
      counts.shared_async_bytes += range.bytes;
      continue;
    }
    global_bytes += range.bytes;
    const int lane = std::popcount(access.lanes);
    if (operation.kind == AsyncKind::kCpAsync && lane < kLanes) {
      access.lanes |= 1U << lane;
      access.bytes = static_cast<std::uint32_t>(range.bytes);
      addresses[static_cast<std::size_t>(lane)] = range.address;
    } else {
      mine.footprint.add(range.address, range.bytes);
    }
  }
  if (access.lanes != 0) mine.add_global(counts, access);
  if (operation.kind != AsyncKind::kCpAsync) {
    const std::uint64_t bytes = global_bytes != 0 ? global_bytes : written_bytes;
    counts.bulk_delivered_bytes += bytes;
    if (!operation.is_repeat) counts.bulk_bytes += bytes;
  }
  return 0;
}

// A pair of CTAs has an accumulator in each, and one product.
void UsageObserver::tensor_issued(Warp&, const Insn& insn, const TensorOperation& operation) {
  for (const TensorRegion& region : operation.regions) {
    if (region.role != TensorRole::kAccumulator) continue;
    shard().usages[insn.syntax].tensor_flop += 2.0 * region.m * region.n * region.k;
    return;
  }
}

void UsageObserver::mbarrier(Warp&, const Insn& insn, const MbarrierEvent& event) {
  // Each lane tells its own.
  const bool is_wait = event.action == MbarrierAction::kWaitSuccess;
  const bool is_poll = event.action == MbarrierAction::kWaitFailure;
  Shard& mine = shard();
  Usage& counts = mine.usages[insn.syntax];
  if (is_wait && !mine.has_waited) ++counts.barrier_waits;
  if (is_poll && !mine.has_polled) ++counts.failed_polls;
  mine.has_waited |= is_wait;
  mine.has_polled |= is_poll;
}

void UsageObserver::barrier(Warp&, const Insn& insn, std::uint32_t, const BarrierEvent& event) {
  if (event.is_passed) ++shard().usages[insn.syntax].barrier_waits;
}

KernelUsage UsageObserver::result(const DeviceModel& model, const Launch& launch) const {
  KernelUsage out;
  out.kernel = code_.info.name;
  out.module = code_.module->name;
  out.num_launches = 1;
  out.num_ctas = launch.grid.count();
  out.grid = launch.grid, out.block = launch.block, out.cluster = launch.cluster;
  out.dynamic_shared_bytes = launch.dynamic_shared_bytes;
  out.static_shared_bytes = code_.info.static_shared_bytes;
  out.num_registers = code_.info.num_registers;
  out.local_bytes = code_.info.local_bytes;
  out.occupancy = occupancy_of(model, code_.info, launch);
  Footprint footprint;
  for (const auto& shard : shards_) footprint.add(shard->footprint);
  out.touched_sectors = footprint.num_sectors();
  for (std::size_t i = 0; i < code_.places.size(); ++i) {
    Usage counts;
    for (const auto& shard : shards_) counts += shard->usages[i];
    const Instruction* instruction = code_.places[i].syntax;
    if (instruction == nullptr || counts.warp_instructions == 0) continue;
    out.total += counts;
    out.by_class[static_cast<std::size_t>(classes_[i])] += counts;
    if (counts.tensor_flop > 0) {
      out.tensor_flop[std::string(tensor_work_[i].type)] += counts.tensor_flop;
    }
    LineUsage& line = out.lines[instruction->pos.line];
    line.usage += counts;
    line.insn_class = classes_[i];
    if (line.text.empty()) line.text = code_.module->text_of(*instruction, kMostChars);
    line.source = source_of(*code_.module, *instruction);
    if (!line.source.empty()) out.source_lines[line.source] += counts;
  }
  out.bounds = bounds_of(out, model);
  return out;
}

}  // namespace tilewright::sim
