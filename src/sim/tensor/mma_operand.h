// A and B of tcgen05.mma, gathered from shared memory or Tensor Memory into dense arrays of codes
// (TileOperand), with the packed layouts of the narrow types undone.
#pragma once

#include "sim/tensor/mma_descriptor.h"
#include "sim/tensor/shared_descriptor.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::sim {

/// What one CTA's memory holds of an operand.
struct MmaOperand {
  OperandMajor major = OperandMajor::kK;
  int rows = 0;  ///< m of A, n of B
  int k = 0;
  int container_bits = 8;              ///< of an element in memory, see container_bits()
  const FormatSpec* format = nullptr;  ///< nullptr: 8-bit integers

  /// Bytes of a code in the dense array.
  constexpr int code_bytes() const { return container_bits <= 8 ? 1 : container_bits / 8; }
  constexpr std::size_t size_bytes() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(k * code_bytes());
  }
  /// 4 or 6 bits in groups of 16 elements and 16 bytes.
  constexpr bool is_padded() const {
    return container_bits == 8 && format != nullptr && format->bits() < 8;
  }
};

/// The operand as rows along its contiguous index.
struct OperandExtent {
  std::uint32_t outer = 0;             ///< of the other index
  std::uint32_t contiguous_bytes = 0;  ///< in memory
};
OperandExtent extent_of(const MmaOperand& operand);

/// Most that an operand can have: 256 rows of 96 codes.
inline constexpr std::size_t kMaxOperandBytes = std::size_t{256} * 96;

/// Copies the operand into `codes`, row-major with k contiguous. `shared` is the shared memory of
/// the CTA from address 0.
/// Returns  kOutOfBounds with the address of the first chunk beyond the end, or kDone
GatherResult gather_shared(std::span<const std::byte> shared, const SharedDescriptor& descriptor,
                           const MmaOperand& operand, std::span<std::byte> codes);

/// Bytes of shared memory side by side.
struct SharedRun {
  std::uint32_t address = 0, bytes = 0;

  constexpr bool operator==(const SharedRun&) const = default;
};
/// The chunks of 16 bytes that the operand lies in as runs, by address, without what is beyond
/// `shared_bytes`.
std::vector<SharedRun> runs_of(const SharedDescriptor& descriptor, const MmaOperand& operand,
                               std::uint32_t shared_bytes);

/// Sets is_undefined of the rows that have an undefined element. `shadow` is even for undefined
/// bytes of shared memory; padding does not count.
void find_undefined_rows(std::span<const std::uint8_t> shadow, const SharedDescriptor& descriptor,
                         const MmaOperand& operand, std::span<std::uint8_t> is_undefined);

/// Cells of Tensor Memory that a row of A takes: 8, or 12 for k96.
constexpr int tensor_cells(const MmaOperand& operand) {
  return operand.k * operand.container_bits / 32;
}
/// One row of A from its cells. 4-bit elements of 8 bits lie in bits 5..2, 6-bit ones in 6..1.
void unpack_tensor_row(const std::uint32_t* cells, const MmaOperand& operand, std::byte* codes);

}  // namespace tilewright::sim
