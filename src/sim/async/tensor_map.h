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
/// Source   CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col
std::string validate(const TensorMapFields& fields);

/// The object. Fields may break rules; what does not fit its place (a box of 70000) is stored as
/// another value that breaks the same rule.
///
/// Layout   0 magic u32, 4 rank - 1, 5 element, 6 interleave, 7 swizzle mode, 8 swizzle atomicity,
///          9 fill, 10 L2 promotion, 11 mode (u8 each), 12 channels per pixel u16, 14 pixels per
///          column u16, 16 address u64, 24 strides u64 x 4, 56 dims u64 x 5, 96 box u16 x 5, 106
///          element strides u8 x 5, 111 zero, 112 lower corner s16 x 3, 118 upper corner s16 x 3,
///          124 zero u32. Swizzle mode and atomicity are PTX's, two fields, because they can be
///          replaced one by one. It is our own: NVIDIA's is not public, and nothing may rely on it.
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
/// elemtype differs from the driver's. An object of zeros becomes a tensor map with its first
/// replacement, and a valid one once every field has been replaced.
/// Returns  what is wrong with field, ordinal or value, or that the object is neither a tensor map
///          nor zeros, with the object unchanged then; "" if it was replaced. Rules that involve
///          several fields are checked when the map is used.
std::string replace_field(std::span<std::byte, kTensorMapBytes> object, TensorMapField field,
                          std::uint32_t ordinal, std::uint64_t value);

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

/// Bytes within which the swizzle permutes; 0 without one.
std::uint32_t swizzle_span_bytes(TensorSwizzle swizzle) noexcept;

/// "u8", "bf16", "16U4_ALIGN16B"; "128B_ATOM_32B".
const char* name_of(TensorElement element) noexcept;
const char* name_of(TensorSwizzle swizzle) noexcept;

}  // namespace tilewright::sim
