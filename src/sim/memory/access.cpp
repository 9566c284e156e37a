#include "sim/memory/access.h"

#include "sim/event/finding.h"
#include "sim/memory/access_fault.h"
#include "sim/state/code.h"
#include "sim/state/global_memory.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

constexpr std::uint64_t kSharedAddressMask = 0xffff'ffff;

/// Of all 32 addresses, inactive lanes being copies of an active one.
struct Extent {
  std::uint64_t low, high, any_bits, all_bits;
};

Extent extent_of(const LaneAddresses& addresses) {
  // Signed comparison is what AVX2 has; the windows of the generic space count as negative then,
  // which is harmless because they are told apart by their top byte first.
  std::int64_t low = static_cast<std::int64_t>(addresses[0]);
  std::int64_t high = low;
  std::uint64_t any_bits = 0, all_bits = ~std::uint64_t{0};
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto value = static_cast<std::int64_t>(addresses[lane]);
    low = value < low ? value : low;
    high = value > high ? value : high;
    any_bits |= addresses[lane];
    all_bits &= addresses[lane];
  }
  return {static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high), any_bits, all_bits};
}

/// The lanes of `active` for which a condition on the address holds.
template <class Condition>
std::uint32_t lanes_where(const LaneAddresses& addresses, std::uint32_t active,
                          Condition condition) {
  std::uint32_t lanes = 0;
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    if (condition(addresses[lane])) lanes |= 1u << lane;
  }
  return lanes;
}

std::uint64_t first_address(const LaneAddresses& addresses, std::uint32_t lanes) {
  return addresses[std::countr_zero(lanes)];
}

void check_alignment(const LaneAddresses& addresses, const Extent& extent, std::uint32_t active,
                     AddressSpace space, const Access& access) {
  const std::uint64_t mask = access.align_bytes - 1;
  if ((extent.any_bits & mask) == 0) [[likely]]
    return;
  const std::uint32_t bad =
      lanes_where(addresses, active, [&](std::uint64_t a) { return (a & mask) != 0; });
  fault_misaligned(space, access.kind, first_address(addresses, bad), access.bytes,
                   access.align_bytes, bad);
}

/// Whether a global access is inside one live allocation; fills the warp's cache.
bool is_allocated(Warp& warp, std::uint64_t address, std::uint64_t bytes) {
  const GlobalMemory& memory = *warp.grid->memory;
  const auto version = static_cast<std::uint32_t>(memory.version());
  if (version == warp.allocation_cache_version && address >= warp.cached_begin &&
      address <= warp.cached_end && bytes <= warp.cached_end - address) {
    return true;
  }
  const auto holder = memory.find(address);
  if (!holder || holder->is_freed) return false;
  warp.allocation_cache_version = version;
  warp.cached_begin = holder->address;
  warp.cached_end = holder->address + holder->size_bytes;
  return address >= warp.cached_begin && address <= warp.cached_end &&
         bytes <= warp.cached_end - address;
}

/// Whether the host can do it without a crash: all that counts when memory is not checked.
bool is_mapped(Warp& warp, std::uint64_t address, std::uint64_t bytes) {
  const Grid& grid = *warp.grid;
  if (address >= grid.arena_begin && address <= grid.arena_end &&
      bytes <= grid.arena_end - address) {
    return true;
  }
  return is_allocated(warp, address, bytes);
}

bool may_access(Warp& warp, std::uint64_t address, std::uint64_t bytes) {
  return warp.grid->options.checks.mem ? is_allocated(warp, address, bytes)
                                       : is_mapped(warp, address, bytes);
}

void check_each_global(Warp& warp, std::uint32_t active, const Access& access,
                       const LaneAddresses& addresses) {
  const std::uint32_t bad = lanes_where(
      addresses, active, [&](std::uint64_t a) { return !may_access(warp, a, access.bytes); });
  if (bad == 0) return;
  const std::uint64_t window = first_address(addresses, bad) & kWindowMask;
  if (window == kSharedWindow || window == kLocalWindow || window == kParamWindow) {
    fault_wrong_space(AddressSpace::kGlobal, access.kind, first_address(addresses, bad), bad);
  }
  fault_global(warp, access.kind, first_address(addresses, bad), access.bytes, bad);
}

void resolve_global(Warp& warp, const Insn& insn, std::uint32_t active, const Access& access,
                    const LaneAddresses& addresses, const Extent& extent, LanePointers& pointers) {
  check_alignment(addresses, extent, active, AddressSpace::kGlobal, access);
  const std::uint64_t span = extent.high - extent.low;
  if (span > std::uint64_t{1} << 62 || !may_access(warp, extent.low, span + access.bytes))
      [[unlikely]] {
    check_each_global(warp, active, access, addresses);
  }
  std::memcpy(pointers.at.data(), addresses.data(), sizeof addresses);
  if (warp.observer != nullptr && !access.is_silent) {
    warp.observer->global_access(
        warp, insn, {access.kind, access.order, active, access.bytes, addresses.data(), false});
  }
}

/// Lanes whose shared addresses are not inside the own CTA's memory, one by one.
void resolve_each_shared(Warp& warp, std::uint32_t active, AddressSpace space, const Access& access,
                         const LaneAddresses& addresses, LanePointers& pointers) {
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    const std::uint64_t address = addresses[lane];
    Cta& cta = cta_of_shared(warp, address, 1u << lane);
    const std::uint64_t offset = address & kSharedOffsetMask;
    const bool is_inside = offset >= kSharedReservedBytes && offset < cta.shared_bytes &&
                           access.bytes <= cta.shared_bytes - offset;
    const bool is_foreign = space == AddressSpace::kSharedCta && &cta != warp.cta;
    if (!is_inside) {
      fault_shared(warp, access.kind, address, access.bytes,
                   lanes_where(addresses, active, [&](std::uint64_t a) {
                     const std::uint64_t o = a & kSharedOffsetMask;
                     return o < kSharedReservedBytes || o + access.bytes > cta.shared_bytes;
                   }));
    }
    if (is_foreign && warp.grid->options.checks.mem) {
      fault_wrong_space(space, access.kind, address, 1u << lane);
    }
    pointers.at[lane] = cta.shared + offset;
  }
  std::byte* const first = pointers.at[std::countr_zero(active)];
  for (std::uint32_t rest = ~active; rest != 0; rest &= rest - 1) {
    pointers.at[std::countr_zero(rest)] = first;
  }
}

void resolve_shared(Warp& warp, const Insn& insn, std::uint32_t active, AddressSpace space,
                    const Access& access, const LaneAddresses& addresses, const Extent& extent,
                    LanePointers& pointers) {
  check_alignment(addresses, extent, active, space, access);
  const std::uint64_t own = std::uint64_t{warp.cta->rank} << kSharedRankShift;
  const bool is_inside =
      extent.low >= own + kSharedReservedBytes && extent.high < own + warp.shared_bytes &&
      access.bytes <= own + warp.shared_bytes - extent.high && extent.any_bits >> 63 == 0;
  if (is_inside) [[likely]] {
    std::byte* const base = warp.shared;
    for (int lane = 0; lane < kLanes; ++lane) pointers.at[lane] = base + (addresses[lane] - own);
  } else {
    resolve_each_shared(warp, active, space, access, addresses, pointers);
  }
  pointers.shared_lanes |= active;
  if (warp.observer != nullptr && !access.is_silent) {
    warp.observer->shared_access(
        warp, insn, {access.kind, access.order, active, access.bytes, addresses.data(), false});
  }
}

void resolve_local(Warp& warp, const Insn& insn, std::uint32_t active, const Access& access,
                   LaneAddresses& addresses, LanePointers& pointers) {
  for (auto& address : addresses) {
    if ((address & kWindowMask) == kLocalWindow) address &= ~kWindowMask;
  }
  const Extent extent = extent_of(addresses);
  check_alignment(addresses, extent, active, AddressSpace::kLocal, access);
  const std::uint32_t bad = lanes_where(addresses, active, [&](std::uint64_t a) {
    return a >= warp.local_bytes || access.bytes > warp.local_bytes - a;
  });
  if (bad != 0) {
    fault_local(warp, access.kind, first_address(addresses, bad), access.bytes, bad);
  }
  const int first = std::countr_zero(active);
  for (int lane = 0; lane < kLanes; ++lane) {
    const int from = (active >> lane & 1) != 0 ? lane : first;
    pointers.at[lane] = warp.local + std::size_t(from) * warp.local_bytes + addresses[from];
  }
  if (warp.observer != nullptr && !access.is_silent) {
    warp.observer->local_access(
        warp, insn, {access.kind, access.order, active, access.bytes, addresses.data(), false});
  }
}

void resolve_param(Warp& warp, std::uint32_t active, const Access& access, LaneAddresses& addresses,
                   LanePointers& pointers) {
  for (auto& address : addresses) {
    if ((address & kWindowMask) == kParamWindow) address &= ~kWindowMask;
  }
  check_alignment(addresses, extent_of(addresses), active, AddressSpace::kParam, access);
  const std::uint64_t size = warp.grid->params.size();
  const std::uint32_t bad = lanes_where(addresses, active, [&](std::uint64_t a) {
    return access.kind != AccessKind::kRead || a >= size || access.bytes > size - a;
  });
  if (bad != 0) {
    fault_param(warp, access.kind, first_address(addresses, bad), access.bytes, bad);
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    pointers.at[lane] = warp.grid->params.data() + addresses[lane];
  }
}

/// Whether lane l's address is that of lane 0 plus l * bytes.
template <class T>
bool is_run(const T* base, std::uint32_t bytes) {
  T difference = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    difference |= (base[lane] - base[0]) ^ (T{lane} << std::countr_zero(bytes));
  }
  return difference == 0;
}

/// The host address of bytes in shared memory of the own CTA, or nullptr.
std::byte* own_shared(const Warp& warp, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t own = std::uint64_t{warp.cta->rank} << kSharedRankShift;
  const std::uint64_t offset = address - own;
  const bool is_inside = address >= own + kSharedReservedBytes && offset < warp.shared_bytes &&
                         bytes <= warp.shared_bytes - offset;
  return is_inside ? warp.shared + offset : nullptr;
}

AddressSpace space_of_generic(std::uint64_t address) {
  switch (address & kWindowMask) {
    case kSharedWindow:
      return AddressSpace::kSharedCluster;
    case kLocalWindow:
      return AddressSpace::kLocal;
    case kParamWindow:
      return AddressSpace::kParam;
    default:
      return AddressSpace::kGlobal;
  }
}

void resolve_generic(Warp& warp, const Insn& insn, std::uint32_t active, const Access& access,
                     LaneAddresses& addresses, LanePointers& pointers) {
  for (std::uint32_t rest = active; rest != 0;) {
    const AddressSpace space = space_of_generic(first_address(addresses, rest));
    const std::uint32_t lanes =
        lanes_where(addresses, rest, [&](std::uint64_t a) { return space_of_generic(a) == space; });
    LaneAddresses part;
    const std::uint64_t filler = first_address(addresses, lanes);
    const std::uint64_t mask = space == AddressSpace::kGlobal ? ~std::uint64_t{0} : ~kWindowMask;
    for (int lane = 0; lane < kLanes; ++lane) {
      part[lane] = ((lanes >> lane & 1) != 0 ? addresses[lane] : filler) & mask;
    }
    LanePointers found;
    resolve_addresses(warp, insn, lanes, space, access, part, found);
    if (lanes == active) {
      pointers = found;
      return;
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      // The first part also gives inactive lanes something to point at.
      if (rest == active || (lanes >> lane & 1) != 0) pointers.at[lane] = found.at[lane];
    }
    pointers.shared_lanes |= found.shared_lanes;
    rest &= ~lanes;
  }
}

bool is_shared(AddressSpace space) {
  return space == AddressSpace::kSharedCta || space == AddressSpace::kSharedCluster;
}

/// Whether a 64-bit address can only be meant for another space than shared memory.
bool lies_elsewhere(const Warp& warp, std::uint64_t address) {
  const std::uint64_t window = address & kWindowMask;
  return window == kLocalWindow || window == kParamWindow ||
         (address >> 32 != 0 && warp.grid->memory->find(address).has_value());
}

void report_wide_shared(const Warp& warp, AddressSpace space, std::uint64_t address,
                        std::uint32_t lanes) {
  if (!warp.grid->options.checks.strict || warp.grid->findings == nullptr) return;
  Finding finding;
  finding.check = "strict";
  finding.kernel = warp.grid->code->info.name;
  finding.what = fmt::format("{:#x} as the address of a {} operand: only its lower 32 bits count",
                             address, name_of(space));
  finding.cause = "upper half of a shared address";
  finding.places.push_back(place_of(warp, warp.grid->code->insns[warp.pc], lanes, "executed"));
  finding.missing =
      "a generic address is not one of shared memory: convert it with cvta.to.shared "
      "(__cvta_generic_to_shared)";
  warp.grid->findings->add(std::move(finding));
}

/// Of 64 bits the device takes the lower 32, and those of a generic address of shared memory are
/// its shared address; kernels rely on it.
void narrow_to_shared(Warp& warp, AddressSpace space, std::uint32_t active,
                      LaneAddresses& addresses) {
  std::uint64_t any_bits = 0;
  for (const std::uint64_t address : addresses) any_bits |= address;
  if (any_bits >> 32 == 0) [[likely]]
    return;
  const std::uint32_t wide =
      lanes_where(addresses, active, [](std::uint64_t a) { return a >> 32 != 0; });
  if (wide != 0) {
    const std::uint32_t foreign =
        lanes_where(addresses, wide, [&](std::uint64_t a) { return lies_elsewhere(warp, a); });
    if (foreign != 0) fault_not_shared(warp, space, first_address(addresses, foreign), foreign);
    report_wide_shared(warp, space, first_address(addresses, wide), wide);
  }
  for (auto& address : addresses) address &= kSharedAddressMask;
}

}  // namespace

void compute_addresses(Warp& warp, const AddressForm& form, std::uint32_t active,
                       LaneAddresses& addresses) {
  const auto offset = static_cast<std::uint64_t>(form.offset);
  if (form.base == kNoRow) {
    const std::uint64_t own = std::uint64_t{warp.cta->rank} << kSharedRankShift;
    addresses.fill(form.is_own_shared ? own + offset : offset);
    return;
  }
  if (form.is_wide) {
    const auto* base = warp.row<std::uint64_t>(form.base);
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = base[lane] + offset;
    if (is_shared(form.space)) narrow_to_shared(warp, form.space, active, addresses);
  } else {
    const auto* base = warp.row<std::uint32_t>(form.base);
    const auto narrow = static_cast<std::uint32_t>(offset);
    for (int lane = 0; lane < kLanes; ++lane) addresses[lane] = base[lane] + narrow;
  }
  if (active != kAllLanes) {
    const std::uint64_t filler = first_address(addresses, active);
    for (int lane = 0; lane < kLanes; ++lane) {
      addresses[lane] = (active >> lane & 1) != 0 ? addresses[lane] : filler;
    }
  }
}

void resolve_addresses(Warp& warp, const Insn& insn, std::uint32_t active, AddressSpace space,
                       const Access& access, LaneAddresses& addresses, LanePointers& pointers) {
  pointers.shared_lanes = 0;
  if (space == AddressSpace::kLocal) {
    return resolve_local(warp, insn, active, access, addresses, pointers);
  }
  if (space == AddressSpace::kParam) {
    return resolve_param(warp, active, access, addresses, pointers);
  }
  const Extent extent = extent_of(addresses);
  if (space == AddressSpace::kGlobal) {
    return resolve_global(warp, insn, active, access, addresses, extent, pointers);
  }
  if (space != AddressSpace::kGeneric) {
    return resolve_shared(warp, insn, active, space, access, addresses, extent, pointers);
  }
  if (extent.any_bits >> 56 == 0) {
    return resolve_global(warp, insn, active, access, addresses, extent, pointers);
  }
  resolve_generic(warp, insn, active, access, addresses, pointers);
}

std::byte* resolve_run(Warp& warp, const Insn& insn, const AddressForm& form,
                       const Access& access) {
  if (form.base == kNoRow || form.space == AddressSpace::kLocal ||
      form.space == AddressSpace::kParam) {
    return nullptr;
  }
  const auto offset = static_cast<std::uint64_t>(form.offset);
  const std::uint64_t bytes = std::uint64_t{kLanes} * access.bytes;
  std::uint64_t address = 0;
  if (form.is_wide) {
    const auto* base = warp.row<std::uint64_t>(form.base);
    if (!is_run(base, access.bytes)) return nullptr;
    address = base[0] + offset;
  } else {
    const auto* base = warp.row<std::uint32_t>(form.base);
    address = base[0] + static_cast<std::uint32_t>(offset);
    if (!is_run(base, access.bytes) || address >> 32 != 0 || (address + bytes) >> 32 != 0) {
      return nullptr;
    }
  }
  if (address % access.align_bytes != 0) return nullptr;
  const bool is_global = form.space == AddressSpace::kGlobal ||
                         (form.space == AddressSpace::kGeneric && address >> 56 == 0);
  if (!is_global && form.space == AddressSpace::kGeneric) return nullptr;
  std::byte* first = nullptr;
  if (!is_global) {
    first = own_shared(warp, address, bytes);
  } else if (address + bytes > address && may_access(warp, address, bytes)) {
    first = reinterpret_cast<std::byte*>(address);
  }
  if (first != nullptr && warp.observer != nullptr && !access.is_silent) {
    alignas(64) LaneAddresses addresses;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      addresses[lane] = address + lane * access.bytes;
    }
    const WarpAccess event{access.kind,  access.order,     kAllLanes,
                           access.bytes, addresses.data(), true};
    is_global ? warp.observer->global_access(warp, insn, event)
              : warp.observer->shared_access(warp, insn, event);
  }
  return first;
}

void resolve(Warp& warp, const Insn& insn, std::uint32_t active, const AddressForm& form,
             const Access& access, LanePointers& pointers) {
  alignas(64) LaneAddresses addresses;
  compute_addresses(warp, form, active, addresses);
  resolve_addresses(warp, insn, active, form.space, access, addresses, pointers);
}

Cta& cta_of_shared(Warp& warp, std::uint64_t address, std::uint32_t lanes) {
  const std::uint64_t rank = (address & 0xffffffff) >> kSharedRankShift;
  if (rank == warp.cta->rank) return *warp.cta;
  Cluster& cluster = *warp.cta->cluster;
  if (rank >= cluster.ctas.size()) {
    fault(FaultKind::kIllegalAddress, lanes,
          "shared address names CTA rank " + std::to_string(rank) + " by " + describe_lanes(lanes) +
              ", but the cluster has " + std::to_string(cluster.ctas.size()) + " CTAs");
  }
  Cta& cta = *cluster.ctas[rank];
  if (cta.is_done) {
    fault(FaultKind::kClusterBlockNotPresent, lanes,
          "access to the shared memory of CTA rank " + std::to_string(rank) + " by " +
              describe_lanes(lanes) +
              ", which has ended; a cluster barrier before the end of the kernel keeps it alive");
  }
  return cta;
}

void check_global(Warp& warp, std::uint64_t address, std::uint64_t bytes, AccessKind kind,
                  std::uint32_t lanes) {
  if (!may_access(warp, address, bytes)) fault_global(warp, kind, address, bytes, lanes);
}

Range resolve_range(Warp& warp, std::uint32_t lane, AddressSpace space, std::uint64_t address,
                    std::uint64_t bytes, std::uint32_t align_bytes, AccessKind kind) {
  const std::uint32_t lanes = 1u << lane;
  if (space == AddressSpace::kGeneric) {
    space = space_of_generic(address);
    if (space != AddressSpace::kGlobal) address &= ~kWindowMask;
  }
  if (address % align_bytes != 0) {
    fault_misaligned(space, kind, address, bytes, align_bytes, lanes);
  }
  if (space == AddressSpace::kGlobal) {
    if ((address & kWindowMask) != 0) fault_wrong_space(space, kind, address, lanes);
    check_global(warp, address, bytes, kind, lanes);
    return {reinterpret_cast<std::byte*>(address), false, address, nullptr};
  }
  if (space == AddressSpace::kParam) {
    const std::uint64_t size = warp.grid->params.size();
    if (kind != AccessKind::kRead || address >= size || bytes > size - address) {
      fault_param(warp, kind, address, bytes, lanes);
    }
    return {warp.grid->params.data() + address, false, address, nullptr};
  }
  if (space == AddressSpace::kLocal) {
    if (address >= warp.local_bytes || bytes > warp.local_bytes - address) {
      fault_local(warp, kind, address, bytes, lanes);
    }
    return {warp.local + std::size_t{lane} * warp.local_bytes + address, false, address, nullptr};
  }
  Cta& cta = cta_of_shared(warp, address, lanes);
  const std::uint64_t offset = address & kSharedOffsetMask;
  if (offset < kSharedReservedBytes || offset >= cta.shared_bytes ||
      bytes > cta.shared_bytes - offset) {
    fault_shared(warp, kind, address, bytes, lanes);
  }
  if (space == AddressSpace::kSharedCta && &cta != warp.cta && warp.grid->options.checks.mem) {
    fault_wrong_space(space, kind, address, lanes);
  }
  return {cta.shared + offset, true, address, &cta};
}

}  // namespace tilewright::sim
