// tcgen05.cp and shift, asynchronous in the tensor pipe; commit, which ends a stretch of it; and
// the fences between its work and that of threads.
#include "sim/insn/async/async_work.h"
#include "sim/insn/lower_forms.h"
#include "sim/insn/memory_operand.h"
#include "sim/insn/sections.h"
#include "sim/insn/tensor/tensor_address.h"
#include "sim/state/byte_shadow.h"
#include "sim/tensor/shared_descriptor.h"

#include <algorithm>
#include <bit>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

/// How source rows go to lanes.
enum class Spread : std::uint8_t {
  kRows,      ///< row i to lane i
  kFour,      ///< row i to lane 32 i
  kHalves,    ///< .warpx2::02_13: rows 0-63 to lanes 0-63 and 64-127
  kQuarters,  ///< .warpx2::01_23: rows 0-31 to partitions 0 and 1, 32-63 to 2 and 3
  kAll,       ///< .warpx4: rows 0-31 to each partition
};

enum class Expand : std::uint8_t { kNone, kFourBits, kSixBits };

struct CopyForm {
  TensorAddressForm address;
  Row descriptor = kNoRow;
  std::uint32_t cta_group = 1;
  std::uint32_t num_rows = 0, row_bytes = 0;
  Spread spread = Spread::kRows;
  Expand expand = Expand::kNone;
};

constexpr std::uint32_t kChunkBytes = 16;  // what a descriptor keeps together

/// The lanes, relative to the address, that a source row goes to.
std::vector<std::uint32_t> lanes_of(Spread spread, std::uint32_t row) {
  switch (spread) {
    case Spread::kRows:
      return {row};
    case Spread::kFour:
      return {32 * row};
    case Spread::kHalves:
      return {row, row + 64};
    case Spread::kQuarters:
      return {row / 32 * 64 + row % 32, row / 32 * 64 + row % 32 + 32};
    case Spread::kAll:
      return {row, row + 32, row + 64, row + 96};
  }
  return {};
}

/// A copy by one thread.
struct Copy {
  const CopyForm* form = nullptr;
  SharedDescriptor source;
  TensorAddress target;
};

std::uint32_t chunk_address(const Copy& copy, std::uint32_t row, std::uint32_t chunk) {
  return shared_operand_address(copy.source, OperandMajor::kK, chunk * kChunkBytes, row);
}

/// Bytes of 16 elements, as the instruction's formats say: 4-bit ones come to bits 5..2, 6-bit
/// ones to 6..1. `defined` likewise: a byte for each.
void expand(Expand how, const std::byte* from, const std::uint8_t* from_defined, std::byte* to,
            std::uint8_t* to_defined) {
  if (how == Expand::kNone) {
    std::copy_n(from, kChunkBytes, to);
    std::copy_n(from_defined, kChunkBytes, to_defined);
    return;
  }
  const std::uint32_t bits = how == Expand::kFourBits ? 4 : 6;
  for (std::uint32_t i = 0; i < kChunkBytes; ++i) {
    const std::uint32_t at = i * bits, byte = at / 8, last = (at + bits - 1) / 8;
    const std::uint32_t both =
        static_cast<std::uint32_t>(from[byte]) | static_cast<std::uint32_t>(from[last]) << 8;
    const std::uint32_t value = both >> at % 8 & ((1u << bits) - 1);
    to[i] = static_cast<std::byte>(value << (how == Expand::kFourBits ? 2 : 1));
    to_defined[i] = from_defined[byte] & from_defined[last];
  }
}

void copy_chunk(const Copy& copy, Cta& cta, std::uint32_t row, std::uint32_t chunk) {
  const std::uint32_t address = chunk_address(copy, row, chunk);
  std::uint8_t all_defined[kChunkBytes];
  std::fill_n(all_defined, kChunkBytes, kDefinedByte);
  const std::uint8_t* const shadow =
      cta.shared_defined.empty() ? all_defined : cta.shared_defined.data() + address;
  std::byte bytes[kChunkBytes];
  std::uint8_t defined[kChunkBytes];
  expand(copy.form->expand, cta.shared + address, shadow, bytes, defined);
  TensorMemory& memory = tensor_memory_of(cta);
  for (const std::uint32_t lane : lanes_of(copy.form->spread, row)) {
    const std::uint32_t at = copy.target.lane + lane;
    const std::uint32_t column = copy.target.column + chunk * 4;
    std::memcpy(memory.row(at) + column, bytes, sizeof bytes);
    if (std::uint8_t* const out = memory.defined_row(at)) {
      for (std::uint32_t i = 0; i < 4; ++i) {
        out[column + i] = static_cast<std::uint8_t>(
            (defined[4 * i] & 1) | (defined[4 * i + 1] & 1) << 1 | (defined[4 * i + 2] & 1) << 2 |
            (defined[4 * i + 3] & 1) << 3);
      }
    }
  }
}

void perform(const Copy& copy, Cta& cta) {
  for (std::uint32_t row = 0; row < copy.form->num_rows; ++row) {
    for (std::uint32_t chunk = 0; chunk < copy.form->row_bytes / kChunkBytes; ++chunk) {
      copy_chunk(copy, cta, row, chunk);
    }
  }
}

/// This CTA, and the peer for two.
std::vector<Cta*> ctas_of(Warp& warp, std::uint32_t cta_group, std::uint32_t lanes) {
  std::vector<Cta*> ctas{warp.cta};
  if (cta_group == 2) ctas.push_back(&peer_of(warp, lanes));
  std::ranges::sort(ctas, {}, &Cta::rank);
  return ctas;
}

/// The source as runs of shared memory.
/// Errors   FaultError if it lies outside
void append_ranges(const Copy& copy, const Cta& cta, std::uint32_t lanes,
                   std::vector<AsyncRange>& ranges) {
  std::vector<std::uint32_t> chunks;
  for (std::uint32_t row = 0; row < copy.form->num_rows; ++row) {
    for (std::uint32_t chunk = 0; chunk < copy.form->row_bytes / kChunkBytes; ++chunk) {
      chunks.push_back(chunk_address(copy, row, chunk));
    }
  }
  std::ranges::sort(chunks);
  const auto outside = std::ranges::find_if(
      chunks, [&](std::uint32_t at) { return at + kChunkBytes > cta.shared_bytes; });
  if (outside != chunks.end()) {
    fault(FaultKind::kIllegalAddress, lanes,
          fmt::format("tcgen05.cp reads shared memory at {:#x}; the CTA has {:#x} bytes", *outside,
                      cta.shared_bytes));
  }
  const std::uint64_t rank = std::uint64_t{cta.rank} << kSharedRankShift;
  for (const std::uint32_t at : chunks) {
    if (!ranges.empty() && ranges.back().address + ranges.back().bytes == (rank | at)) {
      ranges.back().bytes += kChunkBytes;
    } else {
      ranges.push_back({AccessKind::kRead, Proxy::kAsync, true, rank | at, kChunkBytes});
    }
  }
}

TensorRegion region_of(const Copy& copy, const Cta& cta, std::uint32_t index) {
  TensorRegion region;
  region.role = TensorRole::kCopy;
  region.rank = cta.rank;
  region.cta = index;
  region.column = copy.target.column;
  region.num_columns = copy.form->row_bytes / 4;
  region.lane_base = copy.target.lane;
  for (std::uint32_t row = 0; row < copy.form->num_rows; ++row) {
    for (const std::uint32_t lane : lanes_of(copy.form->spread, row)) {
      const std::uint32_t at = copy.target.lane + lane;
      region.lanes[at / 32] |= 1u << at % 32;
    }
  }
  return region;
}

void check_copy(const Warp& warp, const Copy& copy, std::uint64_t descriptor, std::uint32_t lanes) {
  const std::string wrong =
      check_shared_descriptor(descriptor, warp.grid->device->compute_capability);
  if (!wrong.empty()) fault(FaultKind::kIllegalInstruction, lanes, "tcgen05.cp: " + wrong);
  check_tensor_columns(copy.target.column, copy.form->row_bytes / 4, lanes);
  const std::uint32_t last = lanes_of(copy.form->spread, copy.form->num_rows - 1).back();
  if (copy.target.lane + last >= kTensorLanes) {
    fault(FaultKind::kIllegalAddress, lanes,
          fmt::format("tcgen05.cp to lane {} of Tensor Memory, which has 128",
                      copy.target.lane + last));
  }
}

// op: address, descriptor
Step copy_in(Warp& warp, const Insn& insn, std::uint32_t active) {
  const CopyForm& form = *static_cast<const CopyForm*>(insn.extra);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t descriptor = warp.row<std::uint64_t>(form.descriptor)[lane];
    const Copy copy{&form, decode_shared_descriptor(descriptor),
                    decode_tensor_address(tensor_address_bits(warp, form.address, lane))};
    check_copy(warp, copy, descriptor, 1u << lane);
    const std::vector<Cta*> ctas = ctas_of(warp, form.cta_group, 1u << lane);
    std::vector<AsyncRange> ranges;
    std::vector<TensorRegion> regions;
    for (std::uint32_t i = 0; i < ctas.size(); ++i) {
      append_ranges(copy, *ctas[i], 1u << lane, ranges);
      regions.push_back(region_of(copy, *ctas[i], i));
    }
    issue_tensor(
        warp, insn,
        {TensorKind::kCopy, form.cta_group, static_cast<std::uint32_t>(lane), regions, ranges, {}},
        [copy, ctas] {
          for (Cta* cta : ctas) perform(copy, *cta);
        });
  }
  return Step::kNext;
}

constexpr std::uint32_t kShiftColumns = 8;  // 32 bytes

/// Each row gets the next one's; the last row of each partition keeps its own.
void shift_rows(Cta& cta, TensorAddress from) {
  TensorMemory& memory = tensor_memory_of(cta);
  for (std::uint32_t lane = from.lane; lane < kTensorLanes; ++lane) {
    if (lane % kTensorPartitionLanes == kTensorPartitionLanes - 1) continue;
    std::copy_n(memory.row(lane + 1) + from.column, kShiftColumns, memory.row(lane) + from.column);
    if (!memory.keeps_defined()) continue;
    std::copy_n(memory.defined_row(lane + 1) + from.column, kShiftColumns,
                memory.defined_row(lane) + from.column);
  }
}

// op: address
Step shift(Warp& warp, const Insn& insn, std::uint32_t active) {
  const CopyForm& form = *static_cast<const CopyForm*>(insn.extra);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const TensorAddress at = decode_tensor_address(tensor_address_bits(warp, form.address, lane));
    if (at.lane % kTensorPartitionLanes != 0) {
      fault(FaultKind::kMisalignedAddress, 1u << lane,
            fmt::format("tcgen05.shift from lane {}: it must be a multiple of 32", at.lane));
    }
    check_tensor_columns(at.column, kShiftColumns, 1u << lane);
    const std::vector<Cta*> ctas = ctas_of(warp, form.cta_group, 1u << lane);
    std::vector<TensorRegion> regions;
    for (std::uint32_t i = 0; i < ctas.size(); ++i) {
      TensorRegion region;
      region.role = TensorRole::kShift;
      region.kind = AccessKind::kAtomic;
      region.rank = ctas[i]->rank;
      region.cta = i;
      region.column = at.column;
      region.num_columns = kShiftColumns;
      for (std::uint32_t p = at.lane / 32; p < 4; ++p) region.lanes[p] = kAllLanes;
      regions.push_back(region);
    }
    issue_tensor(
        warp, insn,
        {TensorKind::kShift, form.cta_group, static_cast<std::uint32_t>(lane), regions, {}, {}},
        [at, ctas] {
          for (Cta* cta : ctas) shift_rows(*cta, at);
        });
  }
  return Step::kNext;
}

struct CommitForm {
  AddressForm address;
  std::uint32_t cta_group = 1;
  bool is_multicast = false;
};

void arrive(Warp& warp, const Insn& insn, std::uint32_t lane, const MbarrierPlace& place,
            std::uint32_t number) {
  Mbarrier before;
  mbarrier_read(place.object, before);
  const MbarrierResult result = mbarrier_arrive(place.object, 1);
  check_mbarrier(result.error, "the arrival of tcgen05.commit", place, 1u << lane);
  if (warp.observer == nullptr) return;
  MbarrierEvent event;
  event.action = MbarrierAction::kArrive;
  event.order = {MemorySemantics::kRelease, MemoryScope::kCluster};
  event.lane = lane;
  event.address = place.address;
  event.count = 1;
  event.phase = before.parity ? 1 : 0;
  event.is_async = true;
  event.commit = number;
  warp.observer->mbarrier(warp, insn, event);
}

// op: address, mask of CTAs. The barriers are looked up now, and arrived at when the pipe is there.
Step commit(Warp& warp, const Insn& insn, std::uint32_t active) {
  const CommitForm& form = *static_cast<const CommitForm*>(insn.extra);
  LaneAddresses addresses;
  compute_addresses(warp, form.address, active, addresses);
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    // Without a space the manual wants a generic address. Triton gives one of shared memory,
    // widened to 64 bits, and is right on hardware: the unit knows no other memory.
    const std::uint64_t address = addresses[static_cast<std::size_t>(lane)];
    const bool is_narrow = address >> 32 == 0;
    const MbarrierPlace place = find_mbarrier(
        warp, lane, is_narrow ? AddressSpace::kSharedCluster : form.address.space, address);
    std::vector<MbarrierPlace> places{place};
    if (form.is_multicast) {
      places.clear();
      std::uint32_t mask = warp.row<std::uint16_t>(insn.op[1])[lane];
      for (; mask != 0; mask &= mask - 1) {
        const auto rank = static_cast<std::uint32_t>(std::countr_zero(mask));
        places.push_back(mbarrier_in_rank(warp, lane, place, rank));
      }
    }
    const std::uint32_t number = ++warp.num_tensor_pipe_commits;
    const auto thread = static_cast<std::uint32_t>(lane);
    if (warp.observer != nullptr) {
      std::vector<std::uint32_t> targets;
      for (const MbarrierPlace& at : places) targets.push_back(at.address);
      warp.observer->tensor_committed(warp, insn,
                                      {form.cta_group, thread, place.address, number, targets});
    }
    issue_after_tensor(warp, insn, [&warp, &insn, thread, places, number] {
      for (const MbarrierPlace& at : places) arrive(warp, insn, thread, at, number);
    });
  }
  return Step::kNext;
}

template <FenceKind kKind>
Step fence(Warp& warp, const Insn& insn, std::uint32_t active) {
  if (warp.observer != nullptr) {
    FenceEvent event;
    event.kind = kKind;
    warp.observer->fence(warp, insn, active, event);
  }
  return Step::kNext;
}

struct ShapeName {
  std::string_view shape, multicast;
  std::uint32_t num_rows, row_bytes;
  Spread spread;
};

constexpr ShapeName kShapes[] = {
    {"128x256b", "", 128, 32, Spread::kRows},
    {"4x256b", "", 4, 32, Spread::kFour},
    {"128x128b", "", 128, 16, Spread::kRows},
    {"64x128b", "warpx2::02_13", 64, 16, Spread::kHalves},
    {"64x128b", "warpx2::01_23", 64, 16, Spread::kQuarters},
    {"32x128b", "warpx4", 32, 16, Spread::kAll},
};

void take_copy_shape(Lowering& l, CopyForm& form) {
  const int shape = l.take_one_of({"128x256b", "4x256b", "128x128b", "64x128b", "32x128b"});
  if (shape < 0) {
    l.fail("expected a shape: .128x256b, .4x256b, .128x128b, .64x128b or .32x128b");
  }
  constexpr std::string_view kNames[] = {"128x256b", "4x256b", "128x128b", "64x128b", "32x128b"};
  for (const ShapeName& known : kShapes) {
    if (known.shape != kNames[shape]) continue;
    if (!known.multicast.empty() && !l.take(known.multicast)) continue;
    form.num_rows = known.num_rows;
    form.row_bytes = known.row_bytes;
    form.spread = known.spread;
    return;
  }
  l.fail(shape == 3 ? ".64x128b needs .warpx2::02_13 or .warpx2::01_23" : ".32x128b needs .warpx4");
}

void lower_copy(Lowering& l) {
  CopyForm form;
  form.cta_group = take_cta_group(l);
  take_copy_shape(l, form);
  if (l.take("b8x16")) {
    form.expand = l.take("b4x16_p64")   ? Expand::kFourBits
                  : l.take("b6x16_p32") ? Expand::kSixBits
                                        : Expand::kNone;
    if (form.expand == Expand::kNone) l.fail("expected .b4x16_p64 or .b6x16_p32");
  }
  l.finish_modifiers();
  form.address = tensor_address_form(l, 0);
  form.descriptor = l.source(1, Type::kB64);
  const CopyForm* kept = l.keep(form);
  Insn& insn = l.emit(copy_in, {kept->address.base, kept->descriptor}, 0);
  insn.extra = kept;
  insn.flags |= kAsync | kUsesUndefined;
}

void lower_shift(Lowering& l) {
  CopyForm form;
  form.cta_group = take_cta_group(l);
  if (!l.take("down")) l.fail("expected .down");
  need_specific_target(l, 100, "tcgen05.shift");
  l.finish_modifiers();
  form.address = tensor_address_form(l, 0);
  const CopyForm* kept = l.keep(form);
  Insn& insn = l.emit(shift, {kept->address.base}, 0);
  insn.extra = kept;
  insn.flags |= kAsync | kUsesUndefined;
}

void lower_commit(Lowering& l) {
  CommitForm form;
  form.cta_group = take_cta_group(l);
  if (!l.take("mbarrier::arrive::one")) l.fail("expected .mbarrier::arrive::one");
  form.is_multicast = l.take("multicast::cluster");
  const AddressSpace space = take_space(l);
  if (space != AddressSpace::kGeneric && space != AddressSpace::kSharedCluster) {
    l.fail("the mbarrier lies in .shared::cluster");
  }
  if (l.type() != Type::kB64) l.fail("expected .b64");
  l.finish_modifiers();
  form.address = address_form(l, 0, space);
  const Row mask = form.is_multicast ? l.source(1, Type::kB16) : kNoRow;
  const CommitForm* kept = l.keep(form);
  Insn& insn = l.emit(commit, {kept->address.base, mask}, 0);
  insn.extra = kept;
  insn.flags |= kAsync | kBarrier | kUsesUndefined;
}

void lower_fence(Lowering& l, ExecFn exec) {
  l.finish_modifiers();
  l.emit(exec, {}, 0).flags |= kBarrier;
}

const InsnRow kTensorCopyInRows[] = {
    {"tcgen05.cp",
     "tcgen05.cp.cta_group::{1,2}.shape{.multicast}{.b8x16.b6x16_p32|.b8x16.b4x16_p64} [taddr], "
     "s-desc;",
     100, InsnClass::kAsync, lower_copy, true},
    {"tcgen05.shift", "tcgen05.shift.cta_group::{1,2}.down [taddr];", 100, InsnClass::kAsync,
     lower_shift, true},
    {"tcgen05.commit",
     "tcgen05.commit.cta_group::{1,2}.mbarrier::arrive::one{.shared::cluster}"
     "{.multicast::cluster}.b64 [mbar]{, cta-mask};",
     100, InsnClass::kAsync, lower_commit, true},
    {"tcgen05.fence::before_thread_sync", "tcgen05.fence::before_thread_sync;", 100,
     InsnClass::kBarrier, [](Lowering& l) { lower_fence(l, fence<FenceKind::kTensorBefore>); },
     true},
    {"tcgen05.fence::after_thread_sync", "tcgen05.fence::after_thread_sync;", 100,
     InsnClass::kBarrier, [](Lowering& l) { lower_fence(l, fence<FenceKind::kTensorAfter>); },
     true},
};

}  // namespace

const InsnSection& tensor_pipe_section() {
  static const InsnSection section{"Tensor Memory: asynchronous copies and commits",
                                   kTensorCopyInRows};
  return section;
}

}  // namespace tilewright::sim
