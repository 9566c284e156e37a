// What the instructions that touch memory share: modifiers of spaces, caches and memory order, the
// address operand, and moving values between rows and lanes' bytes.
#pragma once

#include "sim/compile/lowering.h"
#include "sim/memory/access.h"

#include <bit>
#include <cstring>
#include <optional>

namespace tilewright::sim {

/// .global, .shared::cluster and so on; generic without one. .const is global here.
AddressSpace take_space(Lowering& l);

/// .weak .volatile .relaxed .acquire .release .acq_rel .sc .mmio with their scope.
MemoryOrder take_order(Lowering& l);

/// .cta .cluster .gpu .sys
MemoryScope take_scope(Lowering& l);

/// Consumes .ca .cg .L1::evict_last .L2::128B and their kin, which change nothing here.
/// Returns  whether a cache policy follows the other operands
bool take_cache_hints(Lowering& l);

/// The operand [a] of an instruction that names this space.
AddressForm address_form(Lowering& l, int operand_idx, AddressSpace space);

/// Reports the address of a form to the translator as a register that is read.
void reads_address(Lowering& l, const AddressForm& form);

/// The element count of .v2 .v4 .v8, 1 without.
int take_vector(Lowering& l);

/// Bytes of a row's lanes for this type.
inline std::uint32_t bytes_of(Type type) noexcept {
  return static_cast<std::uint32_t>(bits_of(type)) / 8;
}

struct Bytes16 {
  std::uint64_t low, high;
  bool operator==(const Bytes16&) const = default;
};

/// Replaces the active lanes of a row.
template <class T>
inline void write_row(T* row, const T* values, std::uint32_t active) {
  if (active == kAllLanes) {
    std::memcpy(row, values, sizeof(T) * kLanes);
    return;
  }
  for (std::uint32_t rest = active; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    row[lane] = values[lane];
  }
}

/// Widens 32 values of `from_bytes` into a row of `to_bytes`, active lanes only.
void extend_row(std::byte* row, std::uint32_t to_bytes, const std::byte* values,
                std::uint32_t from_bytes, bool is_signed, std::uint32_t active);

/// The low `to_bytes` of each lane of a row.
void truncate_row(std::byte* values, std::uint32_t to_bytes, const std::byte* row,
                  std::uint32_t from_bytes);

/// Whether lane i's bytes start i * stride bytes after lane 0's.
inline bool is_consecutive(const LanePointers& pointers, std::uint32_t stride_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(pointers.at[0]);
  std::uintptr_t difference = 0;
  for (std::uintptr_t lane = 0; lane < kLanes; ++lane) {
    difference |=
        (reinterpret_cast<std::uintptr_t>(pointers.at[lane]) - first) ^ (lane * stride_bytes);
  }
  return difference == 0;
}

}  // namespace tilewright::sim
