// Where the bits of 4-, 6- and 8-bit codes lie in memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright {

/// How consecutive codes share bytes. Bit 0 is the lowest bit of byte 0 (little endian).
enum class Packing {
  /// Code i at bit i * bits. 4-bit: the even element in the low nibble; 6-bit: 4 codes in 3 bytes.
  /// What checkpoints and global memory hold.
  kDense,
  /// Groups of 16 codes in 16 bytes: the 16 codes dense, then zero padding (8 bytes for 4-bit
  /// codes,
  /// 4 for 6-bit). What TMA writes to shared memory for 16U4_ALIGN16B and 16U6_ALIGN16B, and what
  /// tcgen05.mma kinds f8f6f4 and mxf8f6f4 read.
  kPadded16,
};

inline constexpr int kPaddedGroupCodes = 16;
inline constexpr int kPaddedGroupBytes = 16;

/// First bit of code `idx`.
constexpr int64_t code_bit_offset(Packing packing, int bits, int64_t idx) {
  if (packing == Packing::kDense) return idx * bits;
  return idx / kPaddedGroupCodes * (8 * kPaddedGroupBytes) + idx % kPaddedGroupCodes * bits;
}

/// Bytes that `num_codes` codes take; a last byte or group that is not full counts in full.
constexpr int64_t packed_bytes(Packing packing, int bits, int64_t num_codes) {
  if (packing == Packing::kDense) return (num_codes * bits + 7) / 8;
  return (num_codes + kPaddedGroupCodes - 1) / kPaddedGroupCodes * kPaddedGroupBytes;
}

/// Code `idx` of a packed array. 1 <= bits <= 8; no check of the index.
constexpr uint8_t load_code(const uint8_t* bytes, Packing packing, int bits, int64_t idx) {
  const int64_t offset = code_bit_offset(packing, bits, idx);
  const int shift = static_cast<int>(offset % 8);
  uint32_t window = bytes[offset / 8];
  if (shift + bits > 8) window |= uint32_t{bytes[offset / 8 + 1]} << 8;
  return static_cast<uint8_t>((window >> shift) & ((1u << bits) - 1));
}

/// Replaces code `idx`; its neighbours in the same bytes stay. Bits of `code` above `bits` are
/// ignored. Not atomic: two threads must not store into the same byte.
constexpr void store_code(uint8_t* bytes, Packing packing, int bits, int64_t idx, uint8_t code) {
  const int64_t offset = code_bit_offset(packing, bits, idx);
  const int shift = static_cast<int>(offset % 8);
  const uint32_t mask = ((1u << bits) - 1) << shift;
  const uint32_t value = (uint32_t{code} << shift) & mask;
  uint8_t* byte = bytes + offset / 8;
  byte[0] = static_cast<uint8_t>((byte[0] & ~mask) | value);
  if (mask > 0xff) byte[1] = static_cast<uint8_t>((byte[1] & ~(mask >> 8)) | value >> 8);
}

/// One code per byte -> packed; unused bits and padding are 0.
/// Errors   InvalidArgument if bits is not 4, 6 or 8, or a code has more bits than that
std::vector<uint8_t> pack_codes(std::span<const uint8_t> codes, int bits,
                                Packing packing = Packing::kDense);

/// Packed -> one code per byte. Padding is ignored, as by the hardware.
/// Errors   InvalidArgument if bits is not 4, 6 or 8, or bytes.size() is not
///          packed_bytes(packing, bits, num_codes)
std::vector<uint8_t> unpack_codes(std::span<const uint8_t> bytes, int bits, int64_t num_codes,
                                  Packing packing = Packing::kDense);

}  // namespace tilewright
