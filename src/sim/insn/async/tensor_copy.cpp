// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor.
#include "sim/async/tensor_copy.h"

#include "sim/exec/turn_order.h"
#include "sim/insn/async/bulk_form.h"
#include "sim/insn/lower_forms.h"
#include "sim/insn/sections.h"
#include "sim/memory/access_fault.h"

#include <memory>
#include <vector>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

enum class TensorTask : std::uint8_t { kLoad, kStore, kReduce, kPrefetch };

struct TensorForm {
  AddressForm shared, map, mbarrier;
  BulkModifiers modifiers;
  TensorTask task = TensorTask::kLoad;
  TensorCopyShape shape = TensorCopyShape::kBox;
  TensorMode mode = TensorMode::kTiled;
  ReduceOp op = ReduceOp::kAdd;
  int rank = 1;
  int num_coordinates = 1;
  std::array<Row, 5> coordinates{};
  int num_im2col_offsets = 0;
  std::array<Row, 3> im2col_offsets{};
  Row cta_mask = kNoRow;
};

/// A copy of one thread. The fields are a copy of the map at the time of issue.
struct TensorWork {
  TensorMapFields fields;
  TensorCopy copy;
  std::byte* shared = nullptr;
  std::uint32_t shared_address = 0;
  MbarrierPlace mbarrier;
  bool is_repeat = false;  ///< for another receiver of a multicast than the first
};

/// Rows of the tensor in global memory, each checked.
struct GlobalRows {
  Warp& warp;
  int lane;
  AccessKind kind;
  std::byte* global(std::uint64_t address, std::size_t bytes) {
    check_global(warp, address, bytes, kind, 1u << lane);
    return reinterpret_cast<std::byte*>(address);
  }
};

[[noreturn]] void refuse(int lane, const std::string& problem) {
  fault(FaultKind::kIllegalInstruction, 1u << lane,
        fmt::format("tensor copy by lane {}: {}", lane, problem));
}

TensorMapFields read_map(Warp& warp, int lane, const TensorForm& form, std::uint64_t address) {
  const Range range = resolve_range(warp, static_cast<std::uint32_t>(lane), form.map.space, address,
                                    kTensorMapBytes, kTensorMapAlignBytes, AccessKind::kRead);
  const DecodedTensorMap map =
      decode_tensor_map(std::span<const std::byte, kTensorMapBytes>(range.data, kTensorMapBytes));
  if (!map.problem.empty()) {
    refuse(lane, fmt::format("the tensor map at {:#x} is not valid: {}", address, map.problem));
  }
  const int rank = form.shape == TensorCopyShape::kRows4 ? 2 : form.rank;
  if (static_cast<int>(map.fields.rank) != rank) {
    refuse(lane, fmt::format("the instruction is for {} dimensions, the tensor map has {}", rank,
                             map.fields.rank));
  }
  if (map.fields.mode != form.mode) {
    refuse(lane, form.mode == TensorMode::kTiled
                     ? "a tiled copy needs a tiled tensor map, this one is im2col"
                     : "an im2col copy needs an im2col tensor map, this one is tiled");
  }
  return map.fields;
}

void read_operands(Warp& warp, int lane, const TensorForm& form, TensorWork& work) {
  work.copy.map = &work.fields;
  work.copy.shape = form.shape;
  for (int i = 0; i < form.num_coordinates; ++i) {
    work.copy.coordinates[static_cast<std::size_t>(i)] =
        warp.row<std::int32_t>(form.coordinates[static_cast<std::size_t>(i)])[lane];
  }
  for (int i = 0; i < form.num_im2col_offsets; ++i) {
    work.copy.im2col_offsets[static_cast<std::size_t>(i)] =
        warp.row<std::uint16_t>(form.im2col_offsets[static_cast<std::size_t>(i)])[lane];
  }
  // A prefetch has no destination; any aligned one passes.
  work.copy.shared_address = work.shared_address & ((1u << kSharedRankShift) - 1);
  std::string problem = check(work.copy);
  if (problem.empty() && form.task == TensorTask::kReduce) {
    problem = check_tensor_reduction(work.fields, form.op);
  }
  if (problem.empty() && form.task == TensorTask::kStore &&
      work.copy.shape == TensorCopyShape::kBox) {
    problem = check_store_start(work.copy);
  }
  if (!problem.empty()) refuse(lane, problem);
}

void move_bytes(Warp& warp, int lane, const TensorForm& form, const TensorWork& work) {
  switch (form.task) {
    case TensorTask::kLoad: {
      GlobalRows rows{warp, lane, AccessKind::kRead};
      load(work.copy, rows, work.shared);
      break;
    }
    case TensorTask::kStore: {
      GlobalRows rows{warp, lane, AccessKind::kWrite};
      store(work.copy, rows, work.shared);
      break;
    }
    case TensorTask::kReduce: {
      await_turn(*warp.cta->cluster);
      GlobalRows rows{warp, lane, AccessKind::kAtomic};
      reduce(work.copy, form.op, rows, work.shared);
      break;
    }
    case TensorTask::kPrefetch:
      break;
  }
}

std::uint64_t notify(Warp& warp, const Insn& insn, int lane, const TensorForm& form,
                     const TensorWork& work) {
  if (warp.observer == nullptr) return 0;
  const bool is_load = form.task == TensorTask::kLoad;
  const AccessKind global = is_load                           ? AccessKind::kRead
                            : form.task == TensorTask::kStore ? AccessKind::kWrite
                                                              : AccessKind::kAtomic;
  std::vector<AsyncRange> ranges;
  ranges.push_back({is_load ? AccessKind::kWrite : AccessKind::kRead, Proxy::kAsync, true,
                    work.shared_address, shared_bytes(work.copy)});
  for_each_row(work.copy, [&](const TensorRow& row) {
    if (row.inside != 0) {
      ranges.push_back({global, Proxy::kAsync, false, row.global_address, row.inside});
    }
  });
  AsyncOperation operation;
  operation.kind =
      form.task == TensorTask::kReduce ? AsyncKind::kTensorReduce : AsyncKind::kTensorCopy;
  operation.completion = is_load ? AsyncCompletion::kMbarrier : AsyncCompletion::kBulkGroup;
  operation.mbarrier = work.mbarrier.address;
  operation.lanes = 1u << lane;
  operation.ranges = ranges;
  operation.tensor = &work.copy;
  operation.is_repeat = work.is_repeat;
  return issue_async(warp, insn, operation);
}

void start(Warp& warp, const Insn& insn, int lane, const TensorForm& form,
           const TensorWork& issued) {
  const std::uint64_t token = notify(warp, insn, lane, form, issued);
  const bool is_load = form.task == TensorTask::kLoad;
  if (is_eager(warp)) {
    move_bytes(warp, lane, form, issued);
    finish_async(warp, insn, token);
    if (is_load) {
      complete_bytes(warp, insn, lane, issued.mbarrier, transaction_bytes(issued.copy));
    }
    return;
  }
  auto work = std::make_shared<TensorWork>(issued);
  work->copy.map = &work->fields;
  const std::function<void()> done = is_load ? [] {} : join_bulk_group(warp, lane);
  start_async(warp, [&warp, &insn, &form, work, token, lane, is_load, done] {
    move_bytes(warp, lane, form, *work);
    finish_async(warp, insn, token);
    if (is_load) complete_bytes(warp, insn, lane, work->mbarrier, transaction_bytes(work->copy));
    done();
  });
}

std::uint32_t rank_of(std::uint64_t address) {
  return static_cast<std::uint32_t>(address >> kSharedRankShift) & 0xff;
}

void place_shared(Warp& warp, int lane, const TensorForm& form, TensorWork& work,
                  std::uint64_t address, AddressSpace space) {
  const AccessKind kind = form.task == TensorTask::kLoad ? AccessKind::kWrite : AccessKind::kRead;
  const Range range = resolve_range(warp, static_cast<std::uint32_t>(lane), space, address,
                                    shared_bytes(work.copy), 1, kind);
  work.shared = range.data;
  work.shared_address = static_cast<std::uint32_t>(range.address);
}

/// Every CTA of the mask gets the data at the same offset and the bytes at its own barrier; with
/// cta_group::2 the barrier is in the CTA of its pair that has the parity of the named one.
void start_multicast(Warp& warp, const Insn& insn, int lane, const TensorForm& form,
                     TensorWork& work, std::uint32_t mask) {
  const std::uint64_t offset = work.shared_address & ((1u << kSharedRankShift) - 1);
  const MbarrierPlace named = work.mbarrier;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const auto rank = static_cast<std::uint32_t>(std::countr_zero(rest));
    place_shared(warp, lane, form, work, std::uint64_t{rank} << kSharedRankShift | offset,
                 AddressSpace::kSharedCluster);
    const std::uint32_t signalled =
        form.modifiers.cta_group == 2 ? (rank & ~1u) | (rank_of(named.address) & 1) : rank;
    work.mbarrier = mbarrier_in_rank(warp, lane, named, signalled);
    start(warp, insn, lane, form, work);
    work.is_repeat = true;
  }
}

/// A tensor map that lies in global memory may have been changed by the kernel.
void tell_map(Warp& warp, const Insn& insn, int lane, const TensorForm& form,
              std::uint64_t address) {
  const bool is_global = form.map.space != AddressSpace::kParam && (address & kWindowMask) == 0;
  if (warp.observer == nullptr || !is_global) return;
  const AsyncRange range{AccessKind::kRead, Proxy::kTensorMap, false, address, kTensorMapBytes};
  AsyncOperation operation;
  operation.kind = AsyncKind::kTensorMapRead;
  operation.lanes = 1U << lane;
  operation.ranges = {&range, 1};
  finish_async(warp, insn, issue_async(warp, insn, operation));
}

void run_lane(Warp& warp, const Insn& insn, int lane, const TensorForm& form,
              std::uint64_t map_address, std::uint64_t shared, std::uint64_t barrier) {
  TensorWork work;
  work.fields = read_map(warp, lane, form, map_address);
  tell_map(warp, insn, lane, form, map_address);
  if (form.task != TensorTask::kPrefetch) {
    work.shared_address = static_cast<std::uint32_t>(shared);
  }
  read_operands(warp, lane, form, work);
  if (form.task == TensorTask::kPrefetch) return;
  place_shared(warp, lane, form, work, shared, form.shared.space);
  if (form.task != TensorTask::kLoad) return start(warp, insn, lane, form, work);
  work.mbarrier = find_mbarrier(warp, lane, form.mbarrier.space, barrier);
  if (form.cta_mask != kNoRow) {
    return start_multicast(warp, insn, lane, form, work,
                           warp.row<std::uint16_t>(form.cta_mask)[lane]);
  }
  if (form.modifiers.cta_group != 2 &&
      rank_of(work.mbarrier.address) != rank_of(work.shared_address)) {
    refuse(lane, fmt::format("the mbarrier is in CTA rank {}, the destination in rank {}",
                             rank_of(work.mbarrier.address), rank_of(work.shared_address)));
  }
  start(warp, insn, lane, form, work);
}

bool has_same_coordinates(Warp& warp, const TensorForm& form, int lane, int other) {
  for (int i = 0; i < form.num_coordinates; ++i) {
    const auto* row = warp.row<std::int32_t>(form.coordinates[static_cast<std::size_t>(i)]);
    if (row[lane] != row[other]) return false;
  }
  return form.num_im2col_offsets == 0;
}

// A whole warp may issue the same store, as epilogues do that give it to "one warp": once is as
// good as 32 times, and the lanes do not race with each other.
Step tensor(Warp& warp, const Insn& insn, std::uint32_t active) {
  const TensorForm& form = *static_cast<const TensorForm*>(insn.extra);
  LaneAddresses shared{}, map, barrier{};
  compute_addresses(warp, form.map, active, map);
  if (form.task != TensorTask::kPrefetch) compute_addresses(warp, form.shared, active, shared);
  if (form.task == TensorTask::kLoad) compute_addresses(warp, form.mbarrier, active, barrier);
  const int first = std::countr_zero(active);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const bool is_repeated = form.task == TensorTask::kStore && lane != first &&
                             map[lane] == map[first] && shared[lane] == shared[first] &&
                             has_same_coordinates(warp, form, lane, first);
    if (is_repeated) continue;
    run_lane(warp, insn, lane, form, map[lane], shared[lane], barrier[lane]);
  }
  return Step::kNext;
}

int take_rank(Lowering& l) {
  const int rank = l.take_one_of({"1d", "2d", "3d", "4d", "5d"}) + 1;
  if (rank == 0) l.fail("expected .1d .2d .3d .4d or .5d");
  return rank;
}

void take_mode(Lowering& l, TensorForm& form) {
  form.num_coordinates = form.rank;
  const int rows = l.take_one_of({"tile::gather4", "tile::scatter4"});
  if (rows >= 0) {
    rows == 0 ? need_target(l, 100, "gather4") : need_family_target(l, 100, "scatter4");
    if (form.rank != 2) l.fail("gather4 and scatter4 are for .2d");
    form.shape = TensorCopyShape::kRows4;
    form.num_coordinates = 5;
    return;
  }
  if (!l.take_prefix("im2col::w").empty()) {
    l.refuse(l.module().target < 100
                 ? "im2col::w needs .target sm_100a"
                 : "im2col::w is not simulated: the manual shows by a figure only where the "
                   "halo's pixels go; use im2col");
  }
  if (l.take("im2col") || l.take("im2col_no_offs")) {
    form.mode = TensorMode::kIm2col;
    form.num_im2col_offsets =
        form.task == TensorTask::kLoad || form.task == TensorTask::kPrefetch ? form.rank - 2 : 0;
    if (form.rank < 3) l.fail("im2col needs three to five dimensions");
    return;
  }
  l.take("tile");
}

/// [map, {c0, c1, ...}]
void bind_map(Lowering& l, TensorForm& form, int operand_idx) {
  form.map = address_form(l, operand_idx, AddressSpace::kGeneric);
  const Operand& operand = l.operand(operand_idx);
  if (operand.parts.size() < 2) l.fail_at(operand, "coordinates are missing: [map, {c0, ...}]");
  const auto& coordinates = operand.parts[1].parts;
  if (static_cast<int>(coordinates.size()) != form.num_coordinates) {
    l.fail_at(operand, fmt::format("expected {} coordinates, found {}", form.num_coordinates,
                                   coordinates.size()));
  }
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    form.coordinates[i] = l.source(coordinates[i], Type::kS32);
  }
}

void bind_im2col(Lowering& l, TensorForm& form, int& next) {
  if (form.num_im2col_offsets == 0) return;
  const auto offsets = l.elements(next);
  if (static_cast<int>(offsets.size()) != form.num_im2col_offsets) {
    l.fail_at(l.operand(next), fmt::format("expected {} offsets", form.num_im2col_offsets));
  }
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    form.im2col_offsets[i] = l.source(offsets[i], Type::kU16);
  }
  ++next;
}

void emit_tensor(Lowering& l, const TensorForm& form) {
  const TensorForm* kept = l.keep(form);
  Insn& insn =
      l.emit(tensor, {kept->shared.base, kept->map.base, kept->mbarrier.base, kept->cta_mask}, 0);
  insn.extra = kept;
  insn.flags |= kAsync | kUsesUndefined;
  if (form.task == TensorTask::kReduce) insn.flags |= kCrossCta;
  for (int i = 0; i < form.num_coordinates; ++i) {
    l.also_reads(kept->coordinates[static_cast<std::size_t>(i)]);
  }
  for (int i = 0; i < form.num_im2col_offsets; ++i) {
    l.also_reads(kept->im2col_offsets[static_cast<std::size_t>(i)]);
  }
}

void lower_copy(Lowering& l) {
  TensorForm form;
  form.rank = take_rank(l);
  form.modifiers = take_bulk_modifiers(l);
  if (form.modifiers.direction == BulkDirection::kSharedToPeer) {
    l.fail("tensor copies go between global and shared memory");
  }
  const bool is_store = form.modifiers.direction == BulkDirection::kStore;
  form.task = is_store ? TensorTask::kStore : TensorTask::kLoad;
  take_mode(l, form);
  l.finish_modifiers();
  if (is_store) {
    bind_map(l, form, 0);
    form.shared = address_form(l, 1, AddressSpace::kSharedCta);
    return emit_tensor(l, form);
  }
  form.shared = address_form(l, 0, form.modifiers.shared_space);
  bind_map(l, form, 1);
  form.mbarrier = address_form(l, 2, AddressSpace::kSharedCluster);
  int next = 3;
  bind_im2col(l, form, next);
  if (form.modifiers.is_multicast) form.cta_mask = l.source(next, Type::kB16);
  emit_tensor(l, form);
}

void lower_tensor_reduce(Lowering& l) {
  TensorForm form;
  form.rank = take_rank(l);
  form.modifiers = take_bulk_modifiers(l);
  form.task = TensorTask::kReduce;
  form.op = take_reduce_op(l);
  take_mode(l, form);
  l.finish_modifiers();
  if (form.modifiers.direction != BulkDirection::kStore) l.fail("reductions go to global memory");
  bind_map(l, form, 0);
  form.shared = address_form(l, 1, AddressSpace::kSharedCta);
  emit_tensor(l, form);
}

void lower_tensor_prefetch(Lowering& l) {
  TensorForm form;
  form.rank = take_rank(l);
  form.task = TensorTask::kPrefetch;
  l.take("L2");
  take_cache_hints(l);
  l.take("global");
  take_mode(l, form);
  l.finish_modifiers();
  bind_map(l, form, 0);
  int next = 1;
  bind_im2col(l, form, next);
  emit_tensor(l, form);
}

const InsnRow kTensorCopyRows[] = {
    {"cp.async.bulk.tensor",
     "cp.async.bulk.tensor.dim.dst.src{.mode}.completion{.multicast::cluster}{.cta_group}{.L2::"
     "cache_hint} [dst], [map, coords], [mbar]{, im2col-offsets}{, ctaMask}{, cache-policy}; or "
     "[map, coords], [src]{, cache-policy};",
     90, InsnClass::kAsync, lower_copy},
    {"cp.reduce.async.bulk.tensor",
     "cp.reduce.async.bulk.tensor.dim.global.shared::cta.op{.mode}.bulk_group{.L2::cache_hint} "
     "[map, coords], [src]{, cache-policy};",
     90, InsnClass::kAsync, lower_tensor_reduce},
    {"cp.async.bulk.prefetch.tensor",
     "cp.async.bulk.prefetch.tensor.dim.L2.global{.mode}{.L2::cache_hint} [map, coords]{, "
     "im2col-offsets}{, cache-policy};",
     90, InsnClass::kAsync, lower_tensor_prefetch},
};

}  // namespace

const InsnSection& tensor_copy_section() {
  static const InsnSection section{"Tensor copies", kTensorCopyRows};
  return section;
}

}  // namespace tilewright::sim
