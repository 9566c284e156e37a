#include "sim/memory/access_fault.h"

#include "sim/state/global_memory.h"

#include <fmt/format.h>

namespace tilewright::sim {
namespace {

const char* word(AccessKind kind) {
  switch (kind) {
    case AccessKind::kRead:
      return "read";
    case AccessKind::kWrite:
      return "write";
    case AccessKind::kAtomic:
      return "atomic operation";
  }
  return "access";
}

std::string plural(std::uint64_t count) {
  return fmt::format("{} byte{}", count, count == 1 ? "" : "s");
}

std::string origin_of(const GlobalMemory::Allocation& allocation) {
  return fmt::format("the {}-byte allocation at {:#x} made by {}", allocation.size_bytes,
                     allocation.address, allocation.origin);
}

// find() knows only what holds an address, so the neighbourhood is probed in growing steps.
std::string nearest(const GlobalMemory& memory, std::uint64_t address) {
  constexpr std::uint64_t kReach = 1 << 20;
  for (std::uint64_t distance = 1; distance <= kReach; distance += distance < 4096 ? 1 : 512) {
    if (distance < address) {
      if (const auto below = memory.find(address - distance)) {
        const std::uint64_t past = address - (below->address + below->size_bytes);
        return fmt::format("{} past the end of {}", plural(past), origin_of(*below));
      }
    }
    if (const auto above = memory.find(address + distance)) {
      return fmt::format("{} before the start of {}", plural(above->address - address),
                         origin_of(*above));
    }
  }
  return address < 0x10000 ? "a null pointer" : "no allocation is near";
}

std::string reason(const Warp& warp, std::uint64_t address, std::uint64_t bytes) {
  const GlobalMemory& memory = *warp.grid->memory;
  const auto holder = memory.find(address);
  if (!holder) return nearest(memory, address);
  if (holder->is_freed) return fmt::format("inside {}, which was freed", origin_of(*holder));
  const std::uint64_t end = holder->address + holder->size_bytes;
  if (address + bytes > end) {
    return fmt::format("the last {} lie past the end of {}", plural(address + bytes - end),
                       origin_of(*holder));
  }
  return fmt::format("inside {}", origin_of(*holder));
}

const char* kind_of_window(std::uint64_t window) {
  return window == kSharedWindow  ? "a generic address of shared memory"
         : window == kLocalWindow ? "a generic address of local memory"
         : window == kParamWindow ? "a generic address of a parameter"
                                  : "no address of that space";
}

}  // namespace

const char* name_of(AddressSpace space) {
  switch (space) {
    case AddressSpace::kGeneric:
      return "generic";
    case AddressSpace::kGlobal:
      return "global";
    case AddressSpace::kSharedCta:
      return "shared::cta";
    case AddressSpace::kSharedCluster:
      return "shared::cluster";
    case AddressSpace::kLocal:
      return "local";
    case AddressSpace::kParam:
      return "param";
  }
  return "";
}

std::string describe_lanes(std::uint32_t lanes) {
  std::string text;
  int count = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((lanes >> lane & 1) == 0) continue;
    int last = lane;
    while (last + 1 < kLanes && (lanes >> (last + 1) & 1) != 0) ++last;
    count += last - lane + 1;
    if (!text.empty()) text += ", ";
    text += last == lane ? fmt::format("{}", lane) : fmt::format("{}-{}", lane, last);
    lane = last;
  }
  return (count == 1 ? "lane " : "lanes ") + text;
}

void fault_global(const Warp& warp, AccessKind kind, std::uint64_t address, std::uint64_t bytes,
                  std::uint32_t lanes) {
  fault(FaultKind::kIllegalAddress, lanes,
        fmt::format("illegal global {} of {} at {:#x} by {}: {}", word(kind), plural(bytes),
                    address, describe_lanes(lanes), reason(warp, address, bytes)));
}

void fault_shared(const Warp& warp, AccessKind kind, std::uint64_t address, std::uint64_t bytes,
                  std::uint32_t lanes) {
  const std::uint64_t offset = address & ((std::uint64_t{1} << kSharedRankShift) - 1);
  const std::string what =
      offset < kSharedReservedBytes
          ? fmt::format("the first {} bytes are reserved", kSharedReservedBytes)
          : fmt::format("the CTA has shared memory up to {:#x} ({} of the kernel)",
                        warp.shared_bytes, plural(warp.shared_bytes - kSharedReservedBytes));
  fault(FaultKind::kIllegalAddress, lanes,
        fmt::format("illegal shared {} of {} at {:#x} by {}: {}", word(kind), plural(bytes),
                    address, describe_lanes(lanes), what));
}

void fault_local(const Warp& warp, AccessKind kind, std::uint64_t offset, std::uint64_t bytes,
                 std::uint32_t lanes) {
  fault(FaultKind::kIllegalAddress, lanes,
        fmt::format("illegal local {} of {} at offset {:#x} by {}: a thread has {} of local memory",
                    word(kind), plural(bytes), offset, describe_lanes(lanes),
                    plural(warp.local_bytes)));
}

void fault_param(const Warp& warp, AccessKind kind, std::uint64_t offset, std::uint64_t bytes,
                 std::uint32_t lanes) {
  const std::string what =
      kind == AccessKind::kRead
          ? fmt::format("the kernel has {} of parameters", plural(warp.grid->params.size()))
          : "parameters of a kernel are read only";
  fault(FaultKind::kIllegalAddress, lanes,
        fmt::format("illegal parameter {} of {} at offset {:#x} by {}: {}", word(kind),
                    plural(bytes), offset, describe_lanes(lanes), what));
}

void fault_misaligned(AddressSpace space, AccessKind kind, std::uint64_t address,
                      std::uint64_t bytes, std::uint32_t align_bytes, std::uint32_t lanes) {
  fault(FaultKind::kMisalignedAddress, lanes,
        fmt::format("misaligned {} {} of {} at {:#x} by {}: the address must be a multiple of {}",
                    name_of(space), word(kind), plural(bytes), address, describe_lanes(lanes),
                    align_bytes));
}

void fault_not_shared(const Warp& warp, AddressSpace space, std::uint64_t address,
                      std::uint32_t lanes) {
  const auto holder = warp.grid->memory->find(address);
  const std::string is = holder ? "global memory, in " + origin_of(*holder)
                                : std::string(kind_of_window(address & kWindowMask));
  fault(FaultKind::kInvalidAddressSpace, lanes,
        fmt::format("{:#x} of {} as the address of a {} operand: this is {}; give it an address of "
                    "shared memory",
                    address, describe_lanes(lanes), name_of(space), is));
}

void fault_wrong_space(AddressSpace space, AccessKind kind, std::uint64_t address,
                       std::uint32_t lanes) {
  fault(FaultKind::kInvalidAddressSpace, lanes,
        fmt::format("{} {} at {:#x} by {}: this is {}; convert it with cvta.to", name_of(space),
                    word(kind), address, describe_lanes(lanes),
                    kind_of_window(address & kWindowMask)));
}

}  // namespace tilewright::sim
