// Operands of tcgen05.mma and sources of tcgen05.cp in shared memory: what a descriptor of sm_100
// says, what is wrong with one, and where an element lies. Stated from the PTX manual and from
// nothing else, so that it is a second witness beside the descriptors that kernels build.
// Source: PTX ISA, "tcgen05: Shared memory descriptor", "Canonical layouts", "Swizzling modes".
#pragma once

#include "sim/tensor/matrix_descriptor.h"

#include <cstdint>
#include <string>

namespace tilewright::sim {

/// Bits 63..61 of a descriptor: 0, 6, 4, 2 and 1.
enum class SharedSwizzle : std::uint8_t { kNone, k32B, k64B, k128B, k128B32BAtom };

/// Bytes of a row of the pattern, along the contiguous index.
constexpr std::uint32_t span_bytes(SharedSwizzle swizzle) {
  switch (swizzle) {
    case SharedSwizzle::kNone:
      return 16;
    case SharedSwizzle::k32B:
      return 32;
    case SharedSwizzle::k64B:
      return 64;
    default:
      return 128;
  }
}

/// A byte address swizzled: the number of its chunk of 16 bytes (32 with the atoms of 32) XORed
/// with the number of its line of 128. A function of the absolute address.
constexpr std::uint32_t swizzled(SharedSwizzle swizzle, std::uint32_t address) {
  switch (swizzle) {
    case SharedSwizzle::kNone:
      return address;
    case SharedSwizzle::k32B:
      return address ^ (address / 128 % 2 * 16);
    case SharedSwizzle::k64B:
      return address ^ (address / 128 % 4 * 16);
    case SharedSwizzle::k128B:
      return address ^ (address / 128 % 8 * 16);
    case SharedSwizzle::k128B32BAtom:
      return address ^ (address / 128 % 4 * 32);
  }
  return address;
}

/// The fields of a descriptor, offsets and addresses in bytes.
struct SharedDescriptor {
  std::uint32_t start_address = 0;
  std::uint32_t leading_bytes = 0;  ///< LBO; the address of the second part if is_leading_absolute
  std::uint32_t stride_bytes = 0;   ///< SBO
  std::uint32_t base_offset = 0;
  SharedSwizzle swizzle = SharedSwizzle::kNone;
  bool is_leading_absolute = false;  ///< sm_103a, k96

  constexpr bool operator==(const SharedDescriptor&) const = default;
};

/// Bits 13..0 are the address without its low 4 bits, 29..16 and 45..32 LBO and SBO likewise,
/// 51..49 the base offset, 52 the mode of LBO, 63..61 the swizzle. One that does not exist counts
/// as none here: check_shared_descriptor() names it.
constexpr SharedDescriptor decode_shared_descriptor(std::uint64_t bits) {
  constexpr SharedSwizzle kSwizzles[8] = {SharedSwizzle::kNone, SharedSwizzle::k128B32BAtom,
                                          SharedSwizzle::k128B, SharedSwizzle::kNone,
                                          SharedSwizzle::k64B,  SharedSwizzle::kNone,
                                          SharedSwizzle::k32B,  SharedSwizzle::kNone};
  const auto field = [bits](int shift) {
    return static_cast<std::uint32_t>(bits >> shift & 0x3FFF) * 16;
  };
  return {field(0),
          field(16),
          field(32),
          static_cast<std::uint32_t>(bits >> 49 & 7),
          kSwizzles[bits >> 61],
          (bits >> 52 & 1) != 0};
}

/// What is wrong with a descriptor: the field, its value, what was expected, what to do. Empty if
/// nothing is. `target` is 100 or 103.
std::string check_shared_descriptor(std::uint64_t bits, int target);
/// What only a careful reading demands: that bits without meaning are 0.
std::string check_unused_bits(std::uint64_t bits);
/// "0x4000004000010040: start address 0x400, leading offset 16 bytes, ..."
std::string describe_shared_descriptor(std::uint64_t bits);

/// Address of a byte of an operand, not swizzled yet. `byte` is the contiguous index in bytes,
/// `other` the other index: (k, mn) for K-major, (mn, k) for MN-major.
///     K-major,  no swizzle   (mn/8)*SBO + (mn%8)*16 + (byte/16)*LBO + byte%16
///     K-major,  span S       (mn/8)*SBO + (mn%8)*S + byte
///     MN-major, no swizzle   (byte/16)*SBO + byte%16 + (k%8)*16 + (k/8)*LBO
///     MN-major, span S       (byte/S)*LBO + byte%S + (k%R)*S + (k/R)*SBO  R = 8; atoms of 32: 4
/// The start address is added. With an absolute LBO, what lies beyond the first line of 128 bytes
/// of a row is at the start of a row at that address.
constexpr std::uint32_t shared_linear_address(const SharedDescriptor& d, OperandMajor major,
                                              std::uint32_t byte, std::uint32_t other) {
  const std::uint32_t span = span_bytes(d.swizzle);
  std::uint32_t start = d.start_address;
  std::uint32_t offset = 0;
  if (major == OperandMajor::kK) {
    if (const std::uint32_t room = 128 - start % 128; d.is_leading_absolute && byte >= room) {
      start = d.leading_bytes;
      byte -= room;
    }
    offset = other / 8 * d.stride_bytes + other % 8 * span;
    offset += d.swizzle == SharedSwizzle::kNone ? byte / 16 * d.leading_bytes + byte % 16 : byte;
  } else if (d.swizzle == SharedSwizzle::kNone) {
    offset = byte / 16 * d.stride_bytes + byte % 16 + other % 8 * 16 + other / 8 * d.leading_bytes;
  } else {
    const std::uint32_t rows = d.swizzle == SharedSwizzle::k128B32BAtom ? 4 : 8;
    offset = byte / span * d.leading_bytes + byte % span + other % rows * span +
             other / rows * d.stride_bytes;
  }
  return start + offset;
}
/// The same, swizzled: where the byte lies.
constexpr std::uint32_t shared_operand_address(const SharedDescriptor& d, OperandMajor major,
                                               std::uint32_t byte, std::uint32_t other) {
  return swizzled(d.swizzle, shared_linear_address(d, major, byte, other));
}

/// An operand of wgmma or tcgen05.mma in the shared memory of one CTA, as the instruction reads it.
struct SharedOperand {
  char name = 'A';         ///< or B
  std::uint32_t rank = 0;  ///< of the CTA in its cluster
  SharedDescriptor descriptor;
  OperandMajor major = OperandMajor::kK;
  std::uint32_t contiguous_bytes = 0;  ///< along the contiguous index
  std::uint32_t outer = 0;             ///< extent of the other index
};

}  // namespace tilewright::sim
