// What bulk and tensor copies share.
#pragma once

#include "sim/async/reduction.h"
#include "sim/insn/async/async_work.h"
#include "sim/insn/memory_operand.h"

#include <optional>

namespace tilewright::sim {

/// Which way bytes go.
enum class BulkDirection : std::uint8_t {
  kLoad,          ///< global to shared, completes on an mbarrier
  kSharedToPeer,  ///< shared::cta to shared::cluster, completes on an mbarrier
  kStore,         ///< shared::cta to global, completes by group
};

struct BulkModifiers {
  BulkDirection direction = BulkDirection::kLoad;
  AddressSpace shared_space = AddressSpace::kSharedCta;  ///< of the destination
  bool is_multicast = false;
  bool has_policy = false;
  int cta_group = 0;
};

/// Consumes spaces, completion mechanism, multicast, cta_group and cache hint.
BulkModifiers take_bulk_modifiers(Lowering& l);

/// .add .min ... of a reduction, consumed.
ReduceOp take_reduce_op(Lowering& l);

/// Adds to the newest, not yet committed group of the lane.
/// Returns  what to call when the copy is done; nothing to do if the timing is eager
std::function<void()> join_bulk_group(Warp& warp, int lane);

}  // namespace tilewright::sim
