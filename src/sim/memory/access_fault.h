// The words for accesses that the device would refuse.
#pragma once

#include "sim/memory/access.h"

#include <string>

namespace tilewright::sim {

/// "lane 3", "lanes 0-7, 9"
std::string describe_lanes(std::uint32_t lanes);

/// "illegal global read of 4 bytes at 0x7f.. by lanes 3-7: 16 bytes past the end of the 4096-byte
/// allocation made by cuMemAlloc"
[[noreturn]] void fault_global(const Warp& warp, AccessKind kind, std::uint64_t address,
                               std::uint64_t bytes, std::uint32_t lanes);
[[noreturn]] void fault_shared(const Warp& warp, AccessKind kind, std::uint64_t address,
                               std::uint64_t bytes, std::uint32_t lanes);
[[noreturn]] void fault_local(const Warp& warp, AccessKind kind, std::uint64_t offset,
                              std::uint64_t bytes, std::uint32_t lanes);
[[noreturn]] void fault_param(const Warp& warp, AccessKind kind, std::uint64_t offset,
                              std::uint64_t bytes, std::uint32_t lanes);
[[noreturn]] void fault_misaligned(AddressSpace space, AccessKind kind, std::uint64_t address,
                                   std::uint64_t bytes, std::uint32_t align_bytes,
                                   std::uint32_t lanes);
/// "shared::cta", as it is written after a dot.
const char* name_of(AddressSpace space);

/// A 64-bit address of another space as that of a shared operand.
[[noreturn]] void fault_not_shared(const Warp& warp, AddressSpace space, std::uint64_t address,
                                   std::uint32_t lanes);
/// An address of one space used in another.
[[noreturn]] void fault_wrong_space(AddressSpace space, AccessKind kind, std::uint64_t address,
                                    std::uint32_t lanes);

}  // namespace tilewright::sim
