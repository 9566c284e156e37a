// Matrix descriptors read back: their fields, and the address of every element under one, as the
// manual says it. Source: PTX ISA, as for arch/smem_descriptor.h, and "Canonical layouts".
#pragma once

#include "arch/smem_descriptor.h"

#include <cstdint>

namespace tilewright::arch {

namespace detail {

constexpr std::uint32_t decode_field(std::uint64_t bits, int bit) {
  return static_cast<std::uint32_t>(bits >> bit & 0x3FFF) << 4;
}
constexpr SmemDescriptor decode_common(std::uint64_t bits) {
  SmemDescriptor d;
  d.start_address = decode_field(bits, 0);
  d.leading_bytes = decode_field(bits, 16);
  d.stride_bytes = decode_field(bits, 32);
  d.base_offset = static_cast<std::uint32_t>(bits >> 49 & 7);
  return d;
}

}  // namespace detail

constexpr SmemDescriptor decode_wgmma_descriptor(std::uint64_t bits) {
  constexpr SmemSwizzle kModes[4] = {SmemSwizzle::kNone, SmemSwizzle::k128B, SmemSwizzle::k64B,
                                     SmemSwizzle::k32B};
  SmemDescriptor d = detail::decode_common(bits);
  d.swizzle = kModes[bits >> 62];
  return d;
}

/// False if the constant bits or the swizzle code are not those of a valid descriptor.
constexpr bool is_tcgen05_descriptor(std::uint64_t bits) {
  const std::uint64_t mode = bits >> 61;
  const bool has_constant = (bits >> 46 & 7) == 1;
  return has_constant && (mode <= 2 || mode == 4 || mode == 6) && (bits >> 53 & 0xFF) == 0;
}
constexpr SmemDescriptor decode_tcgen05_descriptor(std::uint64_t bits) {
  constexpr SmemSwizzle kModes[8] = {
      SmemSwizzle::kNone, SmemSwizzle::k128B32BAtom, SmemSwizzle::k128B, SmemSwizzle::kNone,
      SmemSwizzle::k64B,  SmemSwizzle::kNone,        SmemSwizzle::k32B,  SmemSwizzle::kNone};
  SmemDescriptor d = detail::decode_common(bits);
  d.swizzle = kModes[bits >> 61];
  return d;
}

/// Shared-memory byte address of an element of an operand under a descriptor. `contiguous_byte` (c)
/// is the contiguous index in bytes, `other` the other index: (k, mn) for K-major, (mn, k) for
/// MN-major.
///
///                 no swizzle                                     swizzle of span S
/// K-major   (mn/8)*SBO + (mn%8)*16 + (c/16)*LBO + c%16     (mn/8)*SBO + (mn%8)*S + c
/// MN-major  (c/16)*SBO + c%16 + (k%8)*16 + (k/8)*LBO       (c/S)*LBO + c%S + (k%8)*S + (k/8)*SBO
///
/// The offset is added to the start address first; the swizzle acts on the sum. With 32 B atoms the
/// MN-major pattern has 4 rows instead of 8.
constexpr std::uint32_t operand_byte_address(const SmemDescriptor& d, Major major,
                                             std::uint32_t contiguous_byte, std::uint32_t other) {
  const auto c = contiguous_byte;
  const auto span = static_cast<std::uint32_t>(swizzle_span_bytes(d.swizzle));
  const std::uint32_t rows = d.swizzle == SmemSwizzle::k128B32BAtom && major == Major::kMN ? 4 : 8;
  std::uint32_t offset = other % rows * span;
  if (d.swizzle == SmemSwizzle::kNone) {
    const bool is_k = major == Major::kK;
    offset += c / 16 * (is_k ? d.leading_bytes : d.stride_bytes) + c % 16 +
              other / rows * (is_k ? d.stride_bytes : d.leading_bytes);
  } else if (major == Major::kK) {
    offset += other / rows * d.stride_bytes + c;
  } else {
    offset += c / span * d.leading_bytes + c % span + other / rows * d.stride_bytes;
  }
  return swizzle_address(d.swizzle, d.start_address + offset);
}

}  // namespace tilewright::arch
