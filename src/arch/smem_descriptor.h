// How wgmma and tcgen05.mma are told where an operand lies in shared memory: the fields of 64-bit
// matrix descriptors, and how wgmma's are encoded; tcgen05's: tcgen05_descriptors.h. Source: PTX
// ISA, "wgmma: Matrix Descriptor Format" and "tcgen05: Shared memory descriptor".
#pragma once

#include <cstdint>

namespace tilewright::arch {

/// Which index of an operand is contiguous in shared memory: the reduction index k, or the other
/// one (m of A, n of B).
enum class Major { kK, kMN };

/// Swizzles of shared-memory operands. All act on absolute shared-memory byte addresses.
enum class SmemSwizzle { kNone, k32B, k64B, k128B, k128B32BAtom };

/// Bytes after which the pattern of a swizzle repeats along the contiguous index.
constexpr int swizzle_span_bytes(SmemSwizzle swizzle) {
  if (swizzle == SmemSwizzle::kNone) return 16;
  return swizzle == SmemSwizzle::k32B ? 32 : swizzle == SmemSwizzle::k64B ? 64 : 128;
}

/// The swizzle whose pattern repeats after that many bytes, 32 to 128.
constexpr SmemSwizzle swizzle_of_span(int bytes) {
  return bytes == 128 ? SmemSwizzle::k128B : bytes == 64 ? SmemSwizzle::k64B : SmemSwizzle::k32B;
}

/// A byte address with its swizzle applied: bits of the 128 B line number are XORed into the number
/// of the 16 B (or 32 B) chunk.
constexpr std::uint32_t swizzle_address(SmemSwizzle swizzle, std::uint32_t address) {
  const std::uint32_t line = address >> 7;
  if (swizzle == SmemSwizzle::k32B) return address ^ (line & 1) << 4;
  if (swizzle == SmemSwizzle::k64B) return address ^ (line & 3) << 4;
  if (swizzle == SmemSwizzle::k128B) return address ^ (line & 7) << 4;
  if (swizzle == SmemSwizzle::k128B32BAtom) return address ^ (line & 3) << 5;
  return address;
}

/// The fields of a matrix descriptor, in bytes.
struct SmemDescriptor {
  std::uint32_t start_address = 0;  ///< multiple of 16, below 256 KiB
  std::uint32_t leading_bytes = 0;  ///< leading-dimension byte offset (LBO), multiple of 16
  std::uint32_t stride_bytes = 0;   ///< stride-dimension byte offset (SBO), multiple of 16
  std::uint32_t base_offset = 0;    ///< 0 unless the pattern starts off its alignment
  SmemSwizzle swizzle = SmemSwizzle::kNone;

  constexpr bool operator==(const SmemDescriptor&) const = default;
};

namespace detail {

// Offsets and addresses are stored without their low 4 bits, in 14 bits.
constexpr std::uint64_t encode_field(std::uint32_t bytes, int bit) {
  return static_cast<std::uint64_t>((bytes & 0x3FFFF) >> 4) << bit;
}
constexpr std::uint64_t encode_common(const SmemDescriptor& d) {
  return encode_field(d.start_address, 0) | encode_field(d.leading_bytes, 16) |
         encode_field(d.stride_bytes, 32) | static_cast<std::uint64_t>(d.base_offset & 7) << 49;
}

}  // namespace detail

/// Bits 13..0 address, 29..16 LBO, 45..32 SBO, 51..49 base offset, 63..62 swizzle (0 none, 1 128 B,
/// 2 64 B, 3 32 B). The 32 B-atom swizzle does not exist on sm_90a and must not be passed.
constexpr std::uint64_t encode_wgmma_descriptor(const SmemDescriptor& d) {
  std::uint64_t mode = 0;
  if (d.swizzle == SmemSwizzle::k128B) mode = 1;
  if (d.swizzle == SmemSwizzle::k64B) mode = 2;
  if (d.swizzle == SmemSwizzle::k32B) mode = 3;
  return detail::encode_common(d) | mode << 62;
}

/// A tile of an operand as tensor copies write it: rows of `row_bytes`, cut into boxes of one span
/// of the swizzle that lie one behind another. What the copy is told (box) and what an MMA is told
/// (describe) come from this one value; that they agree with the layout algebra is proved in
/// tests/arch/box_test.cpp. A tile begins at a multiple of 8 spans.
struct SmemBox {
  int rows = 0;
  int row_bytes = 0;  ///< a multiple of the span
  SmemSwizzle swizzle = SmemSwizzle::k128B;

  constexpr int span() const { return swizzle_span_bytes(swizzle); }
  constexpr int boxes() const { return row_bytes / span(); }
  constexpr int box_bytes() const { return rows * span(); }
  constexpr int bytes() const { return rows * row_bytes; }

  /// The operand whose mn runs along the rows (K-major), or whose reduction index does (MN-major).
  /// In both the stride offset leads 8 rows on; the leading offset leads to the next box of an
  /// MN-major operand, and is not read (16) of a K-major one, within one box of which MMAs stay.
  constexpr SmemDescriptor describe(Major major) const {
    const int next_box = boxes() > 1 ? box_bytes() : 0;
    return {.leading_bytes = static_cast<std::uint32_t>(major == Major::kK ? 16 : next_box),
            .stride_bytes = static_cast<std::uint32_t>(rows > 8 ? 8 * span() : 0),
            .swizzle = swizzle};
  }
};

}  // namespace tilewright::arch
