// The init check on memory: which bytes are defined, by loads, stores and asynchronous copies.
#include "sim/async/tensor_copy.h"
#include "sim/check/init/init_checker.h"
#include "sim/state/warp.h"

#include <algorithm>
#include <bit>
#include <span>

namespace tilewright::sim {

namespace {

bool is_consecutive(const WarpAccess& access) {
  if (access.is_run) return true;
  if (access.lanes != kAllLanes) return false;
  std::uint64_t difference = 0;
  for (std::uint64_t lane = 0; lane < kLanes; ++lane) {
    difference |= (access.addresses[lane] - access.addresses[0]) ^ (lane * access.bytes);
  }
  return difference == 0;
}

/// All active lanes at the same place.
bool is_same_place(const WarpAccess& access) {
  const std::uint64_t first = access.addresses[std::countr_zero(access.lanes)];
  std::uint64_t difference = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t is_active = std::uint64_t{0} - (access.lanes >> lane & 1);
    difference |= (access.addresses[lane] ^ first) & is_active;
  }
  return difference == 0;
}

std::uint8_t* shared_shadow(const Warp& warp, std::uint64_t address) {
  const std::uint64_t rank = (address & 0xffffffff) >> kSharedRankShift;
  const auto& ctas = warp.cta->cluster->ctas;
  Cta& cta = rank == warp.cta->rank ? *warp.cta : *ctas[rank];
  return cta.shared_defined.data() + (address & kSharedOffsetMask);
}

}  // namespace

/// What a store writes, as far as it is undefined. False if all is defined.
bool InitChecker::stored_bytes(Warp& warp, const Insn& insn, const WarpAccess& access) {
  if ((insn.flags & warp.undefined_flags) == 0) return false;
  const KernelCode& code = *warp.grid->code;
  const auto index = static_cast<std::size_t>(&insn - code.insns.data());
  const auto rule = static_cast<SpreadRule>(code.spread[index]);
  const bool is_matrix =
      rule == SpreadRule::kMatrixStore || rule == SpreadRule::kMatrixStoreTransposed;
  if (rule != SpreadRule::kStore && !is_matrix) return false;
  const RowUse& use = code.uses[index];
  std::span<const Row> data(code.rows.data() + use.begin + use.num_written, use.num_read);
  if (insn.op[0] != kNoRow) data = data.subspan(1);
  std::uint32_t all = kAllLanes;
  for (const Row row : data) all &= defined(warp, row);
  if (((is_matrix ? kAllLanes : access.lanes) & ~all) == 0 || data.empty()) return false;
  auto& bytes = warp.definedness->bytes;
  for (std::size_t j = 0; j < data.size(); ++j) {
    const std::uint32_t lanes = defined(warp, data[j]);
    const std::size_t size = is_matrix ? 4 : access.bytes / data.size();
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<std::uint8_t>(lanes >> lane & 1);
      const std::size_t g = lane / 4, q = lane % 4;
      if (!is_matrix) {
        const std::uint16_t mask = value != 0 ? 0xffff : defined_bytes(warp, data[j], lane);
        for (std::size_t i = 0; i < size; ++i) {
          bytes[lane][j * size + i] = value != 0 || (i < 16 && (mask >> i & 1) != 0) ? 1 : 0;
        }
      } else if (rule == SpreadRule::kMatrixStore) {
        std::memset(bytes[(8 * j + g) % kLanes].data() + 4 * q, value, 4);
      } else {
        std::memset(bytes[(8 * j + 2 * q) % kLanes].data() + 2 * g, value, 2);
        std::memset(bytes[(8 * j + 2 * q + 1) % kLanes].data() + 2 * g, value, 2);
      }
    }
  }
  return true;
}

template <class ShadowOf>
void InitChecker::write(Warp& warp, const Insn& insn, const WarpAccess& access, bool is_global,
                        ShadowOf&& shadow_of_lane) {
  auto& bytes = warp.definedness->bytes;
  if (!stored_bytes(warp, insn, access)) {
    if (is_consecutive(access)) {
      std::memset(shadow_of_lane(0), kDefinedByte, std::uint64_t{kLanes} * access.bytes);
      return;
    }
    for_each_lane(access.lanes,
                  [&](int lane) { std::memset(shadow_of_lane(lane), kDefinedByte, access.bytes); });
    return;
  }
  std::uint32_t undefined = 0;
  for_each_lane(access.lanes, [&](int lane) {
    const auto& from = bytes[static_cast<std::size_t>(lane)];
    if (!is_all_defined(from.data(), access.bytes)) undefined |= 1U << lane;
  });
  const std::uint8_t mark = is_global || undefined == 0 ? 0 : mark_of(warp, insn, undefined);
  for_each_lane(access.lanes, [&](int lane) {
    auto& from = bytes[static_cast<std::size_t>(lane)];
    if ((undefined >> lane & 1) != 0) {
      std::replace(from.begin(), from.begin() + access.bytes, std::uint8_t{0}, mark);
    }
    std::memcpy(shadow_of_lane(lane), from.data(), access.bytes);
  });
  if (!is_global || undefined == 0) return;
  report(warp, insn, undefined, "an undefined value is stored to global memory");
  for_each_lane(undefined,
                [&](int lane) { std::memset(shadow_of_lane(lane), kDefinedByte, access.bytes); });
}

template <class ShadowOf>
void InitChecker::access(Warp& warp, const Insn& insn, const WarpAccess& access, bool is_global,
                         ShadowOf&& shadow_of_lane) {
  if (access.kind == AccessKind::kWrite)
    return write(warp, insn, access, is_global, std::forward<ShadowOf>(shadow_of_lane));
  const bool is_row = is_consecutive(access);
  const std::uint64_t row_bytes = std::uint64_t{kLanes} * access.bytes;
  auto& bytes = warp.definedness->bytes;
  if (is_row && is_all_defined(shadow_of_lane(0), row_bytes)) return;
  if (is_same_place(access) &&
      is_all_defined(shadow_of_lane(std::countr_zero(access.lanes)), access.bytes)) {
    return;
  }
  std::uint32_t undefined = 0;
  for_each_lane(access.lanes, [&](int lane) {
    if (!is_all_defined(shadow_of_lane(lane), access.bytes)) undefined |= 1U << lane;
  });
  if (undefined == 0) return;
  if (access.kind == AccessKind::kAtomic) {
    report(warp, insn, undefined, "an atomic operation on memory that was never written");
    for_each_lane(undefined,
                  [&](int lane) { std::memset(shadow_of_lane(lane), kDefinedByte, access.bytes); });
    return;
  }
  for_each_lane(access.lanes, [&](int lane) {
    std::memcpy(bytes[static_cast<std::size_t>(lane)].data(), shadow_of_lane(lane), access.bytes);
  });
  const auto& first = bytes[static_cast<std::size_t>(std::countr_zero(undefined))];
  const auto mark = std::find_if(first.begin(), first.begin() + access.bytes,
                                 [](std::uint8_t byte) { return byte != kDefinedByte; });
  warp.definedness->load_mark = *mark;
  warp.definedness->load_bytes = access.bytes;
  warp.has_loaded_undefined = true;
}

void InitChecker::shared_access(Warp& warp, const Insn& insn, const WarpAccess& a) {
  access(warp, insn, a, false, [&](int lane) { return shared_shadow(warp, a.addresses[lane]); });
}

void InitChecker::local_access(Warp& warp, const Insn& insn, const WarpAccess& a) {
  WarpAccess apart = a;
  std::array<std::uint64_t, kLanes> addresses{};  // of other threads' memory: not side by side
  for_each_lane(a.lanes, [&](int lane) {
    addresses[static_cast<std::size_t>(lane)] =
        std::uint64_t{warp.index * 32 + static_cast<std::uint32_t>(lane)} * warp.local_bytes +
        a.addresses[lane];
  });
  apart.addresses = addresses.data();
  std::uint8_t* const shadow = warp.cta->local_defined.data();
  access(warp, insn, apart, false,
         [&](int lane) { return shadow + addresses[static_cast<std::size_t>(lane)]; });
}

void InitChecker::global_access(Warp& warp, const Insn& insn, const WarpAccess& a) {
  if (global_ == nullptr) return;
  WarpAccess inside = a;
  // Inactive lanes have the address of an active one.
  const bool all_inside =
      a.is_run ? global_->contains(a.addresses[0], std::uint64_t{kLanes} * a.bytes)
               : std::ranges::all_of(std::span(a.addresses, kLanes), [&](std::uint64_t address) {
                   return global_->contains(address, a.bytes);
                 });
  if (!all_inside) {
    for_each_lane(a.lanes, [&](int lane) {
      if (!global_->contains(a.addresses[lane], a.bytes)) inside.lanes &= ~(1U << lane);
    });
    if (inside.lanes == 0) return;
    if (a.kind == AccessKind::kRead) {
      for (auto& bytes : warp.definedness->bytes) bytes.fill(kDefinedByte);
    }
  }
  access(warp, insn, inside, true, [&](int lane) { return global_->at(a.addresses[lane]); });
}

std::uint8_t* InitChecker::shadow_of(const Warp& warp, const AsyncRange& range) const {
  if (range.is_shared) return shared_shadow(warp, range.address);
  if (global_ == nullptr || !global_->contains(range.address, range.bytes)) return nullptr;
  return global_->at(range.address);
}

void InitChecker::UndefinedBytes::add(const std::uint8_t* shadow, std::uint64_t bytes,
                                      std::uint64_t offset) {
  if (shadow == nullptr || is_all_defined(shadow, bytes)) return;
  for (std::uint64_t i = 0; i < bytes; ++i) {
    if (shadow[i] == kDefinedByte) continue;
    if (count == 0 || offset + i < first) {
      first = offset + i;
      mark = shadow[i];
    }
    last = count == 0 ? offset + i : std::max(last, offset + i);
    ++count;
  }
}

/// Byte for byte, a read followed by the write of the same bytes; what is not read is zero.
void InitChecker::copy_shadow(Warp& warp, const Insn& insn, const AsyncOperation& operation) {
  const AsyncRange* source = nullptr;
  for (const AsyncRange& range : operation.ranges) {
    if (range.kind == AccessKind::kRead) {
      source = &range;
      continue;
    }
    std::uint8_t* const to = shadow_of(warp, range);
    const std::uint8_t* const from = source == nullptr ? nullptr : shadow_of(warp, *source);
    const std::uint64_t bytes = source == nullptr ? 0 : std::min(source->bytes, range.bytes);
    UndefinedBytes undefined;
    undefined.add(from, bytes, 0);
    const bool is_undefined = undefined.count != 0;
    const bool is_reduction = range.kind == AccessKind::kAtomic;
    if (is_undefined && (!range.is_shared || is_reduction)) {
      undefined.address = source->address;
      report_copy(warp, insn, operation.lanes, "a bulk copy", undefined);
    } else if (is_reduction && count_undefined(to, range.bytes) != 0) {
      report(warp, insn, operation.lanes, "a reduction into memory that was never written");
    }
    if (to != nullptr) {
      std::memset(to, kDefinedByte, range.bytes);
      if (is_undefined && range.is_shared && !is_reduction) std::memcpy(to, from, bytes);
    }
    source = nullptr;
  }
}

/// Each row of the box with what of it is inside the tensor: byte for byte.
void InitChecker::load_tensor(Warp& warp, const TensorCopy& copy, const AsyncRange& box) {
  std::uint8_t* const to = shadow_of(warp, box);
  std::memset(to, kDefinedByte, box.bytes);  // what lies outside of the tensor is filled
  for_each_row(copy, [&](const TensorRow& row) {
    const AsyncRange inside{AccessKind::kRead, Proxy::kAsync, false, row.global_address,
                            row.inside};
    if (row.inside == 0 || count_undefined(shadow_of(warp, inside), row.inside) == 0) return;
    for_each_piece(copy, row, [&](const TensorPiece& piece) {
      if (!piece.is_inside) return;
      std::memcpy(to + (piece.shared_address - copy.shared_address),
                  global_->at(piece.global_address), piece.bytes);
    });
  });
}

/// Undefined bytes that a store or reduction takes from shared memory into the tensor.
InitChecker::UndefinedBytes InitChecker::undefined_stored(Warp& warp, const TensorCopy& copy,
                                                          const AsyncRange& box) const {
  UndefinedBytes out;
  out.address = box.address;
  const std::uint8_t* const from = shadow_of(warp, box);
  if (count_undefined(from, box.bytes) == 0) return out;
  for_each_row(copy, [&](const TensorRow& row) {
    for_each_piece(copy, row, [&](const TensorPiece& piece) {
      if (!piece.is_inside) return;
      const std::uint32_t offset = piece.shared_address - copy.shared_address;
      out.add(from + offset, piece.bytes, offset);
    });
  });
  return out;
}

void InitChecker::copy_tensor(Warp& warp, const Insn& insn, const AsyncOperation& operation) {
  if (operation.ranges.empty() || operation.tensor == nullptr) return;
  const AsyncRange& box = operation.ranges.front();
  if (box.kind == AccessKind::kWrite) return load_tensor(warp, *operation.tensor, box);
  std::uint64_t undefined_target = 0;
  for (const AsyncRange& range : operation.ranges.subspan(1)) {
    std::uint8_t* const shadow = shadow_of(warp, range);
    if (range.kind == AccessKind::kAtomic) undefined_target += count_undefined(shadow, range.bytes);
    if (shadow != nullptr) std::memset(shadow, kDefinedByte, range.bytes);
  }
  const UndefinedBytes undefined = undefined_stored(warp, *operation.tensor, box);
  if (undefined.count != 0) {
    report_copy(warp, insn, operation.lanes, "a tensor store", undefined);
  } else if (undefined_target != 0) {
    report(warp, insn, operation.lanes, "a reduction into memory that was never written");
  }
}

std::uint64_t InitChecker::async_issued(Warp& warp, const Insn& insn,
                                        const AsyncOperation& operation) {
  switch (operation.kind) {
    case AsyncKind::kTensorCopy:
    case AsyncKind::kTensorReduce:
      copy_tensor(warp, insn, operation);
      break;
    case AsyncKind::kWgmma:
      read_operands(warp, insn, operation);
      break;
    default:
      copy_shadow(warp, insn, operation);
  }
  return 0;
}

}  // namespace tilewright::sim
