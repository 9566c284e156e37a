// tcgen05.alloc, dealloc, relinquish_alloc_permit: which CTA has which columns of Tensor Memory.
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"
#include "sim/insn/tensor/tensor_address.h"

#include <bit>
#include <string>

#include <fmt/format.h>

namespace tilewright::sim {

TensorAddressForm tensor_address_form(Lowering& l, int operand_idx) {
  const Address address = l.address(operand_idx);
  if (address.base == kNoRow || address.is_wide || address.space != Space::kGeneric) {
    l.fail_at(l.operand(operand_idx),
              "an address of Tensor Memory is a 32-bit register, as tcgen05.alloc gives it");
  }
  return {address.base, static_cast<std::uint32_t>(address.offset)};
}

std::uint32_t take_cta_group(Lowering& l) {
  const int group = l.take_one_of({"cta_group::1", "cta_group::2"});
  if (group < 0) l.fail("expected .cta_group::1 or .cta_group::2");
  return group == 0 ? 1 : 2;
}

void take_sync_aligned(Lowering& l) {
  if (!l.take("sync") || !l.take("aligned")) l.fail("expected .sync.aligned");
}

void check_tensor_columns(std::uint32_t column, std::uint32_t num_columns, std::uint32_t lanes) {
  if (column + num_columns <= kTensorColumns) return;
  fault(FaultKind::kIllegalAddress, lanes,
        fmt::format("Tensor Memory has columns 0 to 511; this reaches {} to {}", column,
                    column + num_columns - 1));
}

namespace {

struct AllocForm {
  AddressForm result;
  std::uint32_t cta_group = 1;
};

std::uint32_t checked_columns(Warp& warp, Row row, std::uint32_t active, const char* name) {
  const std::uint32_t columns = warp.row<std::uint32_t>(row)[std::countr_zero(active)];
  if (std::has_single_bit(columns) && columns >= kTensorLeastColumns && columns <= kTensorColumns) {
    return columns;
  }
  fault(
      FaultKind::kIllegalInstruction, active,
      fmt::format("{} of {} columns: their number must be 32, 64, 128, 256 or 512", name, columns));
}

void notify(Warp& warp, const Insn& insn, TensorAllocAction action, std::uint32_t cta_group,
            std::uint32_t column, std::uint32_t columns) {
  if (warp.observer == nullptr) return;
  warp.observer->tensor_allocated(warp, insn, {action, cta_group, column, columns});
}

/// By whom there is to wait, and for what to change.
Step wait_for_columns(Warp& warp, const TensorMemory& own, const TensorMemory* peer) {
  warp.wait = {WaitKind::kColumns, peer != nullptr,
               own.version() + (peer != nullptr ? peer->version() : 0)};
  return Step::kRetry;
}

/// The first columns that are free in both.
std::optional<std::uint32_t> find_free_pair(const TensorMemory& own, const TensorMemory& peer,
                                            std::uint32_t columns) {
  if (const auto at = own.find_free(columns); at && peer.is_free(*at, columns)) return at;
  for (std::uint32_t at = 0; at < kTensorColumns; at += kTensorLeastColumns) {
    if (own.is_free(at, columns) && peer.is_free(at, columns)) return at;
  }
  return std::nullopt;
}

/// One warp of each CTA comes; the second does it for both.
/// Returns  the column, or nothing while there is something to wait for
std::optional<std::uint32_t> meet_peer(TensorMemory& own, TensorMemory& peer,
                                       const TensorMemory::PairRequest& wanted,
                                       std::uint32_t lanes) {
  if (own.request.is_granted) {
    const std::uint32_t column = own.request.column;
    own.request = {};
    return column;
  }
  if (!peer.request.is_waiting || peer.request.is_granted) {
    own.request = wanted;
    return std::nullopt;
  }
  const TensorMemory::PairRequest& other = peer.request;
  const bool is_same = other.is_dealloc == wanted.is_dealloc &&
                       other.num_columns == wanted.num_columns &&
                       (!wanted.is_dealloc || other.column == wanted.column);
  if (!is_same) {
    fault(FaultKind::kIllegalInstruction, lanes,
          fmt::format("the two CTAs of a pair must ask for the same: this one {} {} columns, the "
                      "peer {} {}",
                      wanted.is_dealloc ? "gives back" : "allocates", wanted.num_columns,
                      other.is_dealloc ? "gives back" : "allocates", other.num_columns));
  }
  std::uint32_t column = wanted.column;
  if (wanted.is_dealloc) {
    if (!own.give_back(column, wanted.num_columns) || !peer.give_back(column, wanted.num_columns)) {
      fault(FaultKind::kIllegalInstruction, lanes,
            fmt::format("dealloc of columns {} to {}: the pair has no such allocation", column,
                        column + wanted.num_columns - 1));
    }
  } else {
    const bool may_allocate = own.may_allocate() && peer.may_allocate();
    const auto free = may_allocate ? find_free_pair(own, peer, wanted.num_columns) : std::nullopt;
    if (!free) {
      own.request = wanted;
      return std::nullopt;
    }
    column = *free;
    own.take_permit();
    peer.take_permit();
    own.take({column, wanted.num_columns, 2});
    peer.take({column, wanted.num_columns, 2});
  }
  own.request = {};
  peer.request.is_granted = true;
  peer.request.column = column;
  peer.changed();
  return column;
}

void write_result(Warp& warp, const Insn& insn, const AllocForm& form, std::uint32_t active,
                  std::uint32_t column) {
  const std::uint32_t first = active & (0 - active);
  LanePointers pointers;
  resolve(warp, insn, first, form.result, {AccessKind::kWrite, {}, 4, 4}, pointers);
  std::memcpy(pointers.at[static_cast<std::size_t>(std::countr_zero(first))], &column,
              sizeof column);
}

// op: address, number of columns
Step alloc(Warp& warp, const Insn& insn, std::uint32_t active) {
  const AllocForm& form = *static_cast<const AllocForm*>(insn.extra);
  const std::uint32_t columns = checked_columns(warp, insn.op[1], active, "alloc");
  TensorMemory& own = tensor_memory_of(*warp.cta);
  if (own.has_relinquished()) {
    fault(FaultKind::kIllegalInstruction, active,
          "alloc after relinquish_alloc_permit: the CTA has given up its permit");
  }
  std::optional<std::uint32_t> column;
  TensorMemory* peer = nullptr;
  if (form.cta_group == 1) {
    if (own.may_allocate()) {
      own.take_permit();
      column = own.find_free(columns);
    }
    if (column) own.take({*column, columns, 1});
  } else {
    peer = &tensor_memory_of(own.request.is_granted ? *warp.cta->cluster->ctas[warp.cta->rank ^ 1]
                                                    : peer_of(warp, active));
    column = meet_peer(own, *peer, {true, false, false, columns, 0}, active);
  }
  own.wanted_columns = columns;
  if (!column) return wait_for_columns(warp, own, peer);
  write_result(warp, insn, form, active, *column);
  notify(warp, insn, TensorAllocAction::kAlloc, form.cta_group, *column, columns);
  return Step::kNext;
}

// op: address, number of columns
Step dealloc(Warp& warp, const Insn& insn, std::uint32_t active) {
  const AllocForm& form = *static_cast<const AllocForm*>(insn.extra);
  const std::uint32_t columns = checked_columns(warp, insn.op[1], active, "dealloc");
  const TensorAddress at =
      decode_tensor_address(warp.row<std::uint32_t>(insn.op[0])[std::countr_zero(active)]);
  TensorMemory& own = tensor_memory_of(*warp.cta);
  if (form.cta_group == 1) {
    if (!own.give_back(at.column, columns)) {
      fault(FaultKind::kIllegalInstruction, active,
            fmt::format("dealloc of columns {} to {}: there is no such allocation", at.column,
                        at.column + columns - 1));
    }
  } else {
    TensorMemory& peer =
        tensor_memory_of(own.request.is_granted ? *warp.cta->cluster->ctas[warp.cta->rank ^ 1]
                                                : peer_of(warp, active));
    if (!meet_peer(own, peer, {true, false, true, columns, at.column}, active)) {
      return wait_for_columns(warp, own, &peer);
    }
  }
  notify(warp, insn, TensorAllocAction::kDealloc, form.cta_group, at.column, columns);
  return Step::kNext;
}

Step relinquish(Warp& warp, const Insn& insn, std::uint32_t) {
  const AllocForm& form = *static_cast<const AllocForm*>(insn.extra);
  tensor_memory_of(*warp.cta).relinquish();
  notify(warp, insn, TensorAllocAction::kRelinquish, form.cta_group, 0, 0);
  return Step::kNext;
}

void take_b32(Lowering& l) {
  if (l.type() != Type::kB32) l.fail("expected .b32");
}

void lower_alloc(Lowering& l) {
  AllocForm form;
  form.cta_group = take_cta_group(l);
  take_sync_aligned(l);
  const AddressSpace space = take_space(l);
  if (space != AddressSpace::kGeneric && space != AddressSpace::kSharedCta) {
    l.fail("the address of the columns is written to .shared::cta");
  }
  take_b32(l);
  l.finish_modifiers();
  form.result = address_form(l, 0, space);
  const AllocForm* kept = l.keep(form);
  Insn& insn = l.emit(alloc, {kept->result.base, l.source(1, Type::kU32)}, 0);
  insn.extra = kept;
  insn.flags |= kAligned | kBarrier | kMemoryWrite | kUsesUndefined;
}

void lower_dealloc(Lowering& l) {
  AllocForm form;
  form.cta_group = take_cta_group(l);
  take_sync_aligned(l);
  take_b32(l);
  l.finish_modifiers();
  Insn& insn = l.emit(dealloc, {l.source(0, Type::kU32), l.source(1, Type::kU32)}, 0);
  insn.extra = l.keep(form);
  insn.flags |= kAligned | kBarrier | kUsesUndefined;
}

void lower_relinquish(Lowering& l) {
  AllocForm form;
  form.cta_group = take_cta_group(l);
  take_sync_aligned(l);
  l.finish_modifiers();
  Insn& insn = l.emit(relinquish, {}, 0);
  insn.extra = l.keep(form);
  insn.flags |= kAligned | kBarrier;
}

const InsnRow kTensorMemoryRows[] = {
    {"tcgen05.alloc",
     "tcgen05.alloc.cta_group::{1,2}.sync.aligned{.shared::cta}.b32 [dst], columns;", 100,
     InsnClass::kAsync, lower_alloc, true},
    {"tcgen05.dealloc", "tcgen05.dealloc.cta_group::{1,2}.sync.aligned.b32 taddr, columns;", 100,
     InsnClass::kAsync, lower_dealloc, true},
    {"tcgen05.relinquish_alloc_permit",
     "tcgen05.relinquish_alloc_permit.cta_group::{1,2}.sync.aligned;", 100, InsnClass::kAsync,
     lower_relinquish, true},
};

}  // namespace

const InsnSection& tensor_memory_section() {
  static const InsnSection section{"Tensor Memory: allocation", kTensorMemoryRows};
  return section;
}

}  // namespace tilewright::sim
