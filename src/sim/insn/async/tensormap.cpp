// tensormap.replace and tensormap.cp_fenceproxy: kernels that edit tensor maps.
#include "sim/async/tensor_map.h"
#include "sim/insn/async/async_work.h"
#include "sim/insn/lower_forms.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

struct ReplaceForm {
  AddressForm address;
  TensorMapField field = TensorMapField::kGlobalAddress;
  std::uint32_t ordinal = 0;
  bool is_wide = false;
  Row value = kNoRow;
};

std::span<std::byte, kTensorMapBytes> object_at(std::byte* data) {
  return std::span<std::byte, kTensorMapBytes>(data, kTensorMapBytes);
}

Step replace(Warp& warp, const Insn& insn, std::uint32_t active) {
  const ReplaceForm& form = *static_cast<const ReplaceForm*>(insn.extra);
  Access access;
  access.kind = AccessKind::kWrite;
  access.bytes = kTensorMapBytes;
  access.align_bytes = kTensorMapAlignBytes;
  LanePointers pointers;
  resolve(warp, insn, active, form.address, access, pointers);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t value = form.is_wide ? warp.row<std::uint64_t>(form.value)[lane]
                                             : warp.row<std::uint32_t>(form.value)[lane];
    const std::string problem =
        replace_field(object_at(pointers.at[lane]), form.field, form.ordinal, value);
    if (!problem.empty()) {
      fault(FaultKind::kIllegalInstruction, 1u << lane, "tensormap.replace: " + problem);
    }
  }
  return Step::kNext;
}

bool has_ordinal(TensorMapField field) {
  return field == TensorMapField::kBoxDim || field == TensorMapField::kGlobalDim ||
         field == TensorMapField::kGlobalStride || field == TensorMapField::kElementStride;
}

/// What sm_100 and sm_103a added, where the new value stands in the text.
void check_target(Lowering& l, TensorMapField field, int index) {
  const bool is_atomicity = field == TensorMapField::kSwizzleAtomicity;
  if (is_atomicity) need_family_target(l, 100, ".swizzle_atomicity");
  if (!l.is_immediate(index)) return;
  const std::int64_t value = l.immediate(index);
  if (field == TensorMapField::kElemtype && value > 12) {
    need_family_target(l, 100, "the packed .elemtype");
  }
  if (field == TensorMapField::kSwizzleMode && value > 3) {
    need_specific_target(l, 103, "the .swizzle_mode of 96 bytes");
  }
}

void lower_replace(Lowering& l) {
  ReplaceForm form;
  l.take("tile");
  const int field = l.take_one_of(
      {"global_address", "rank", "box_dim", "global_dim", "global_stride", "element_stride",
       "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode"});
  if (field < 0) l.fail("expected a field of tensor maps, such as .global_address");
  form.field = static_cast<TensorMapField>(field);
  const AddressSpace space = take_space(l);
  if (!l.take("b1024")) l.fail("expected .b1024");
  const Type type = l.type();
  l.finish_modifiers();
  form.is_wide = type == Type::kB64;
  const bool needs_wide =
      form.field == TensorMapField::kGlobalAddress || form.field == TensorMapField::kGlobalStride;
  if (form.is_wide != needs_wide || (!form.is_wide && type != Type::kB32)) {
    l.fail(needs_wide ? "this field takes .b64" : "this field takes .b32");
  }
  form.address = address_form(l, 0, space);
  int next = 1;
  if (has_ordinal(form.field)) form.ordinal = static_cast<std::uint32_t>(l.immediate(next++));
  check_target(l, form.field, next);
  form.value = l.source(next, type);
  const ReplaceForm* kept = l.keep(form);
  Insn& insn = l.emit(replace, {kept->address.base, kept->value}, 0);
  insn.extra = kept;
  insn.flags |= kMemoryWrite | kUsesUndefined;
}

struct CopyForm {
  AddressForm destination, source;
  MemoryOrder order;
};

/// Copies 128 bytes once for the whole warp and releases them to the tensormap proxy.
Step copy_and_fence(Warp& warp, const Insn& insn, std::uint32_t active) {
  const CopyForm& form = *static_cast<const CopyForm*>(insn.extra);
  LaneAddresses to, from;
  compute_addresses(warp, form.destination, active, to);
  compute_addresses(warp, form.source, active, from);
  const int lane = std::countr_zero(active);
  const auto lane_idx = static_cast<std::uint32_t>(lane);
  const Range source = resolve_range(warp, lane_idx, form.source.space, from[lane], kTensorMapBytes,
                                     kTensorMapBytes, AccessKind::kRead);
  const Range target = resolve_range(warp, lane_idx, form.destination.space, to[lane],
                                     kTensorMapBytes, kTensorMapBytes, AccessKind::kWrite);
  const AsyncRange ranges[] = {
      {AccessKind::kRead, Proxy::kGeneric, true, source.address, kTensorMapBytes},
      {AccessKind::kWrite, Proxy::kTensorMap, false, target.address, kTensorMapBytes},
  };
  AsyncOperation operation;
  operation.kind = AsyncKind::kTensorMapCopy;
  operation.lanes = active;
  operation.ranges = ranges;
  const std::uint64_t token = issue_async(warp, insn, operation);
  std::memcpy(target.data, source.data, kTensorMapBytes);
  finish_async(warp, insn, token);
  if (warp.observer != nullptr) {
    FenceEvent event;
    event.kind = FenceKind::kProxyTensorMapRelease;
    event.order = form.order;
    event.address = target.address;
    event.bytes = kTensorMapBytes;
    warp.observer->fence(warp, insn, active, event);
  }
  return Step::kNext;
}

void lower_tensormap_copy(Lowering& l) {
  CopyForm form;
  if (!l.take("global") || !(l.take("shared::cta") || l.take("shared"))) {
    l.fail("expected .global.shared::cta");
  }
  if (!l.take("tensormap::generic")) l.fail("expected .tensormap::generic");
  form.order = take_order(l);
  l.take("sync"), l.take("aligned");
  l.finish_modifiers();
  form.destination = address_form(l, 0, AddressSpace::kGlobal);
  form.source = address_form(l, 1, AddressSpace::kSharedCta);
  if (l.immediate(2) != static_cast<std::int64_t>(kTensorMapBytes)) {
    l.fail_at(l.operand(2), "the size must be 128");
  }
  const CopyForm* kept = l.keep(form);
  Insn& insn = l.emit(copy_and_fence, {kept->destination.base, kept->source.base}, 0);
  insn.extra = kept;
  insn.flags |= kAligned | kMemoryWrite | kUsesUndefined;
}

const InsnRow kTensormapRows[] = {
    {"tensormap.replace",
     "tensormap.replace{.tile}.field{.global,.shared::cta}.b1024.{b32,b64} [addr], {ord,} value;",
     90, InsnClass::kAsync, lower_replace, true},
    {"tensormap.cp_fenceproxy",
     "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.scope.sync.aligned "
     "[dst], [src], 128;",
     90, InsnClass::kAsync, lower_tensormap_copy},
};

}  // namespace

const InsnSection& tensormap_section() {
  static const InsnSection section{"Tensor maps", kTensormapRows};
  return section;
}

}  // namespace tilewright::sim
