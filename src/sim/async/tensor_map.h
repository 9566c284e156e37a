// Tensor maps: the 128-byte objects that tell a tensor copy about a tensor and its box.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace tilewright::sim {

inline constexpr std::size_t kTensorMapBytes = 128;
inline constexpr std::size_t kTensorMapAlignBytes = 64;
inline constexpr std::size_t kMaxTensorRank = 5;

// The values of the next five are the driver's (CUtensorMapDataType and so on); tensormap.replace
// has others, see replace_field().
enum class TensorElement : std::uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF64,
  kBf16,
  kF32Ftz,
  kTf32,
  kTf32Ftz,
  k16U4Align8B,
  k16U4Align16B,
  k16U6Align16B,
};
enum class TensorInterleave : std::uint8_t { kNone, k16B, k32B };
enum class TensorSwizzle : std::uint8_t {
  kNone,
  k32B,
  k64B,
  k128B,
  k128BAtom32B,
  k128BAtom32BFlip8B,
  k128BAtom64B,
  k96B,  ///< not in the driver's list: tensormap.replace on sm_103a only
};
enum class TensorL2Promotion : std::uint8_t { kNone, k64B, k128B, k256B };
enum class TensorFill : std::uint8_t { kZeros, kNan };

enum class TensorMode : std::uint8_t { kTiled, kIm2col };

/// What a tensor map says. Index 0 is the innermost dimension, whose elements are contiguous.
struct TensorMapFields {
  TensorElement element = TensorElement::kU8;
  TensorInterleave interleave = TensorInterleave::kNone;
  TensorSwizzle swizzle = TensorSwizzle::kNone;
  TensorL2Promotion l2_promotion = TensorL2Promotion::kNone;  ///< a hint without effect
  TensorFill fill = TensorFill::kZeros;
  TensorMode mode = TensorMode::kTiled;
  std::uint32_t rank = 1;
  std::uint64_t address = 0;
  std::array<std::uint64_t, 5> dims{};           ///< elements
  std::array<std::uint64_t, 4> strides_bytes{};  ///< of dimension i + 1
  std::array<std::uint32_t, 5> box{};            ///< elements, before element strides; tiled only
  std::array<std::uint32_t, 5> element_strides{};
  // im2col only: the corners of the spatial dimensions 1 to rank - 2, innermost first.
  std::array<std::int32_t, 3> lower_corner{};
  std::array<std::int32_t, 3> upper_corner{};
  std::uint32_t channels_per_pixel = 0;
  std::uint32_t pixels_per_column = 0;

  bool operator==(const TensorMapFields&) const = default;
};

/// Which rule of the driver the fields break, as "tensor map: box[0] = 300; expected 1 to 256";
/// empty if none. Entries beyond the rank are not looked at.
/// Source   CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col; where an H200's
///          driver decides otherwise (tests/golden/hardware/tensor_map.txt.gz), as it does
std::string validate(const TensorMapFields& fields);

/// The same for cuTensorMapEncodeIm2colWide, of whose corners only the first is used. The object
/// does not say that it is wide.
std::string validate_im2col_wide(const TensorMapFields& fields);

/// The object, as the hardware has it: of fields that break no rule, see validate().
///
/// Layout   32-bit words, low bits first; counts less 1. 0 and 1 address; 2 bit 0 im2col, 4 rank
///          (3 bits), 7 element (4: PTX's code, with 7 and 8 for TF32), 11 interleave (2), 13
///          swizzle (2), 15 NaN fill, 16 TF32, 17 L2 promotion (2); 3 to 6 strides / 16, and bits
///          32 to 35 of each in word 7; 8 to 12 dims; 13 element strides (3 bits each), 24 box[0]
///          or channels; 14 box[1] to [4], or the corners: 16, 8 or 5 bits for each of 1 to 3, the
///          upper ones from bit 16 on; 15 pixels per column. Behind them the driver notes the bytes
///          of a box (word 16) and of the swizzle's pattern (18), which nothing reads.
/// Source   derived from objects of an H200's driver (tests/golden/hardware/tensor_map.txt.gz).
///          Inferred, because no H200 has them: elements 13 to 15 (4 and 6 bits), word 2 bits 19
///          (swizzle atomicity, 2) and 22 (swizzle of 96 bytes). Bits 1 and 21 are read as nothing
void encode(const TensorMapFields& fields, std::span<std::byte, kTensorMapBytes> object);

/// The fields of an object, if it is one.
struct DecodedTensorMap {
  TensorMapFields fields;
  std::string problem;  ///< why the object is none or breaks a rule, see validate(); "" if neither
};
DecodedTensorMap decode_tensor_map(std::span<const std::byte, kTensorMapBytes> object);

/// The fields that tensormap.replace names, in the manual's order.
enum class TensorMapField : std::uint8_t {
  kGlobalAddress,
  kRank,  ///< the value is the rank - 1
  kBoxDim,
  kGlobalDim,
  kGlobalStride,  ///< bytes
  kElementStride,
  kElemtype,
  kInterleaveLayout,
  kSwizzleMode,
  kSwizzleAtomicity,
  kFillMode,
};

/// tensormap.replace: `ordinal` is the dimension (box_dim, global_dim, element_stride), that
/// dimension - 1 (global_stride), else ignored; `value` is the value or PTX's own code, which for
/// elemtype differs from the driver's. A global_dim of 0 becomes 2^32, which only counts if the map
/// is used.
/// Returns  what is wrong with ordinal or value, with the object unchanged then; "" if it was
///          replaced. Rules that involve several fields are checked when the map is used.
std::string replace_field(std::span<std::byte, kTensorMapBytes> object, TensorMapField field,
                          std::uint32_t ordinal, std::uint64_t value);
void replace_address(std::span<std::byte, kTensorMapBytes> object, std::uint64_t address) noexcept;

/// Why a tiled copy that starts at this innermost coordinate is an illegal instruction; "" if it is
/// not one. In bytes the coordinate must be a multiple of 16, inside the tensor and outside,
/// negative or not; for the 16-byte aligned packed types it must be a multiple of 128 elements. The
/// other coordinates are free.
/// Source   measured on an H200 for elements of 1, 2 and 4 bytes; no document says so. Packed
///          types: PTX ISA, "Sub-byte types"
std::string check_start(const TensorMapFields& fields, std::int32_t innermost);

/// Bits of one element in global memory: 4, 6, 8, 16, 32 or 64.
std::uint32_t element_bits(TensorElement element) noexcept;

/// Of four or six bits, spread over 16-byte groups in shared memory.
bool is_padded(TensorElement element) noexcept;
bool is_floating(TensorElement element) noexcept;

/// Bytes of a box in shared memory as the driver counts them: of each dimension box / element
/// stride, rounded down.
std::uint64_t box_bytes(const TensorMapFields& fields) noexcept;

/// Bytes within which the swizzle permutes; 0 without one.
std::uint32_t swizzle_span_bytes(TensorSwizzle swizzle) noexcept;

/// "u8", "bf16", "16U4_ALIGN16B"; "128B_ATOM_32B".
const char* name_of(TensorElement element) noexcept;
const char* name_of(TensorSwizzle swizzle) noexcept;

}  // namespace tilewright::sim
