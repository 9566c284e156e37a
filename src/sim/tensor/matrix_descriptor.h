// Operands of wgmma in shared memory: what a matrix descriptor says, where an element lies, and the
// copy of a tile into a dense array. Stated from the PTX manual and from nothing else, so that it
// is a second witness beside the descriptors that kernels build.
// Source: PTX ISA, "wgmma: Matrix Descriptor Format", "Strides", "Swizzling Modes".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace tilewright::sim {

/// Which index of an operand is contiguous: imm-trans 0 is K-major, 1 is MN-major (mn: m of A, n of
/// B).
enum class OperandMajor { kK, kMn };

/// Bytes of a row of the swizzle pattern; bits 63..62 of a descriptor select 0, 128, 64 or 32.
enum class OperandSwizzle : std::uint32_t { kNone = 0, k32B = 32, k64B = 64, k128B = 128 };

/// The fields of a wgmma matrix descriptor, offsets and addresses in bytes.
struct MatrixDescriptor {
  std::uint32_t start_address = 0;
  std::uint32_t leading_bytes = 0;  ///< LBO
  std::uint32_t stride_bytes = 0;   ///< SBO
  std::uint32_t base_offset = 0;
  OperandSwizzle swizzle = OperandSwizzle::kNone;

  constexpr bool operator==(const MatrixDescriptor&) const = default;
};

/// Bits 13..0 are the address without its low 4 bits, 29..16 and 45..32 LBO and SBO likewise,
/// 51..49 the base offset. Other bits are ignored: carries of address arithmetic end up in them.
constexpr MatrixDescriptor decode_matrix_descriptor(std::uint64_t bits) {
  constexpr OperandSwizzle kSwizzles[4] = {OperandSwizzle::kNone, OperandSwizzle::k128B,
                                           OperandSwizzle::k64B, OperandSwizzle::k32B};
  const auto field = [bits](int shift) {
    return static_cast<std::uint32_t>(bits >> shift & 0x3FFF) * 16;
  };
  return {field(0), field(16), field(32), static_cast<std::uint32_t>(bits >> 49 & 7),
          kSwizzles[bits >> 62]};
}

/// A byte address with the number of its 16-byte chunk XORed with the number of its 128-byte line,
/// modulo the chunks of a row. A function of the absolute address, not of the offset in a tile.
constexpr std::uint32_t swizzled(OperandSwizzle swizzle, std::uint32_t address) {
  const auto span = static_cast<std::uint32_t>(swizzle);
  const std::uint32_t chunk_mask = span == 0 ? 0 : span / 16 - 1;
  return address ^ ((address / 128 & chunk_mask) * 16);
}

/// Address of the element that lies in row `mn` at `k`, in shared memory.
///     K-major,  no swizzle   (mn/8)*SBO + (mn%8)*16 + (kb/16)*LBO + kb%16        kb = k * bytes
///     K-major,  span S       (mn/8)*SBO + (mn%8)*S + kb
///     MN-major, no swizzle   (mb/16)*SBO + mb%16 + (k%8)*16 + (k/8)*LBO          mb = mn * bytes
///     MN-major, span S       (mb/S)*LBO + mb%S + (k%8)*S + (k/8)*SBO
/// The start address is added, the sum not swizzled yet.
constexpr std::uint32_t linear_address(const MatrixDescriptor& d, OperandMajor major,
                                       std::uint32_t mn, std::uint32_t k,
                                       std::uint32_t element_bytes) {
  const auto span = static_cast<std::uint32_t>(d.swizzle);
  const std::uint32_t kb = k * element_bytes;
  const std::uint32_t mb = mn * element_bytes;
  std::uint32_t offset = 0;
  if (major == OperandMajor::kK) {
    offset = span == 0 ? mn / 8 * d.stride_bytes + mn % 8 * 16 + kb / 16 * d.leading_bytes + kb % 16
                       : mn / 8 * d.stride_bytes + mn % 8 * span + kb;
  } else {
    offset = span == 0
                 ? mb / 16 * d.stride_bytes + mb % 16 + k % 8 * 16 + k / 8 * d.leading_bytes
                 : mb / span * d.leading_bytes + mb % span + k % 8 * span + k / 8 * d.stride_bytes;
  }
  return d.start_address + offset;
}
/// The same, swizzled: where the element lies.
constexpr std::uint32_t operand_address(const MatrixDescriptor& d, OperandMajor major,
                                        std::uint32_t mn, std::uint32_t k,
                                        std::uint32_t element_bytes) {
  return swizzled(d.swizzle, linear_address(d, major, mn, k, element_bytes));
}

/// The part of an operand that an instruction reads: `rows` (m of A, n of B) times k elements.
struct OperandTile {
  OperandMajor major = OperandMajor::kK;
  int rows = 0;
  int k = 0;
  int element_bytes = 2;  ///< 1, 2 or 4; 1-bit operands: k / 8 elements of 1 byte

  constexpr std::size_t size_bytes() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(k) *
           static_cast<std::size_t>(element_bytes);
  }
};

enum class GatherStatus {
  kDone,
  kOutOfBounds,            ///< an element lies beyond the end of shared memory
  kBaseOffsetUnsupported,  ///< the manual does not say enough about base offsets other than 0
};

/// Result of gather_tile. If out of bounds, `address` is the first byte of the first such element
/// (by row, then k).
struct GatherResult {
  GatherStatus status = GatherStatus::kDone;
  std::uint32_t address = 0;

  constexpr bool is_done() const { return status == GatherStatus::kDone; }
};

/// Copies an operand into `codes`, dense and row-major with k contiguous. `shared` is the shared
/// memory of the CTA from address 0. Nothing is written unless all of it lies inside.
/// Errors   InvalidArgument if codes.size() != tile.size_bytes() or a number of the tile is not as
///          OperandTile says
GatherResult gather_tile(std::span<const std::byte> shared, const MatrixDescriptor& descriptor,
                         const OperandTile& tile, std::span<std::byte> codes);

}  // namespace tilewright::sim
