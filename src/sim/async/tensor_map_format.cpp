// The 128 bytes of a tensor map: where its fields are, and reading, writing and replacing them.
#include "sim/async/tensor_map.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

using Object = std::span<std::byte, kTensorMapBytes>;
using ConstObject = std::span<const std::byte, kTensorMapBytes>;

/// Bits of one 32-bit word.
struct Bits {
  std::uint8_t word, shift, width;

  constexpr std::uint32_t mask() const {
    return static_cast<std::uint32_t>(((std::uint64_t{1} << width) - 1) << shift);
  }
};

constexpr Bits kIsIm2col{2, 0, 1};
constexpr Bits kRank{2, 4, 3};  // less 1, as all counts are
constexpr Bits kElement{2, 7, 4};
constexpr Bits kInterleave{2, 11, 2};
constexpr Bits kSwizzle{2, 13, 2};
constexpr Bits kNanFill{2, 15, 1};
constexpr Bits kTf32{2, 16, 1};
constexpr Bits kL2Promotion{2, 17, 2};
constexpr Bits kAtomicity{2, 19, 2};
constexpr Bits kSwizzle96{2, 22, 1};
constexpr Bits kInnerBox{13, 24, 8};  // or channels per pixel
constexpr Bits kPixels{15, 0, 16};

constexpr Bits stride_low(std::size_t i) {
  return {static_cast<std::uint8_t>(3 + i), 0, 32};
}
constexpr Bits stride_high(std::size_t i) {
  return {7, static_cast<std::uint8_t>(4 * i), 4};
}
constexpr Bits dim_bits(std::size_t i) {
  return {static_cast<std::uint8_t>(8 + i), 0, 32};
}
constexpr Bits element_stride_bits(std::size_t i) {
  return {13, static_cast<std::uint8_t>(3 * i), 3};
}
constexpr Bits box_bits(std::size_t i) {
  return i == 0 ? kInnerBox : Bits{14, static_cast<std::uint8_t>(8 * (i - 1)), 8};
}
/// The more corners, the fewer bits: 16, 8 and 8, or three times 5; of the upper one 16 further up.
constexpr Bits corner_bits(std::uint32_t rank, std::size_t i, bool is_upper) {
  constexpr std::uint8_t kWidths[] = {16, 8, 5};
  const std::uint8_t width = kWidths[rank - 3];
  return {14, static_cast<std::uint8_t>(width * i + (is_upper ? 16 : 0)), width};
}

constexpr std::size_t kBoxBytesWord = 16;
constexpr std::size_t kPatternBytesWord = 18;
// Of word 2. Maps of CuTe DSL have bit 1, and for sm_100 bit 21; the driver of an H200 sets
// neither.
constexpr std::uint32_t kUnknownMode = 0xff80000c;
constexpr std::uint32_t kUnknownStrides = 0x00ff8000;  // of word 13

std::uint32_t word_at(ConstObject object, std::size_t word) {
  std::uint32_t value;
  std::memcpy(&value, object.data() + 4 * word, sizeof value);
  return value;
}

void put_word(Object object, std::size_t word, std::uint32_t value) {
  std::memcpy(object.data() + 4 * word, &value, sizeof value);
}

std::uint32_t get(ConstObject object, Bits bits) {
  return (word_at(object, bits.word) & bits.mask()) >> bits.shift;
}

/// The low bits of the value.
void put(Object object, Bits bits, std::uint64_t value) {
  const std::uint32_t others = word_at(object, bits.word) & ~bits.mask();
  put_word(object, bits.word,
           others | (static_cast<std::uint32_t>(value << bits.shift) & bits.mask()));
}

std::int32_t get_signed(ConstObject object, Bits bits) {
  const std::uint32_t sign = std::uint32_t{1} << (bits.width - 1);
  return static_cast<std::int32_t>((get(object, bits) ^ sign) - sign);
}

std::uint64_t get_address(ConstObject object) {
  return word_at(object, 0) | std::uint64_t{word_at(object, 1)} << 32;
}

void put_address(Object object, std::uint64_t address) {
  put_word(object, 0, static_cast<std::uint32_t>(address));
  put_word(object, 1, static_cast<std::uint32_t>(address >> 32));
}

std::uint64_t get_stride(ConstObject object, std::size_t i) {
  return (get(object, stride_low(i)) | std::uint64_t{get(object, stride_high(i))} << 32) * 16;
}

void put_stride(Object object, std::size_t i, std::uint64_t bytes) {
  put(object, stride_low(i), bytes / 16 & 0xffffffff);
  put(object, stride_high(i), bytes >> 36);
}

struct SwizzleCode {
  std::uint8_t mode, atomicity;
};

/// PTX's swizzle_mode and swizzle_atomicity by TensorSwizzle.
constexpr SwizzleCode kSwizzleCodes[] = {{0, 0}, {1, 0}, {2, 0}, {3, 0},
                                         {3, 1}, {3, 2}, {3, 3}, {4, 0}};
constexpr std::uint8_t kMaxSwizzleMode = 4;
constexpr std::uint8_t kMaxSwizzleAtomicity = 3;

void put_swizzle_mode(Object object, std::uint64_t mode) {
  put(object, kSwizzle, mode);
  put(object, kSwizzle96, mode >> 2);
}

/// By PTX's code, which is the format's but for the types of TF32: those are fp32 and a bit.
constexpr TensorElement kElementOfPtx[] = {
    TensorElement::kU8,          TensorElement::kU16,         TensorElement::kU32,
    TensorElement::kS32,         TensorElement::kU64,         TensorElement::kS64,
    TensorElement::kF16,         TensorElement::kF32,         TensorElement::kF32Ftz,
    TensorElement::kF64,         TensorElement::kBf16,        TensorElement::kTf32,
    TensorElement::kTf32Ftz,     TensorElement::k16U4Align8B, TensorElement::k16U4Align16B,
    TensorElement::k16U6Align16B};
constexpr std::uint32_t kPtxF32 = 7;    // and 8 with flushing
constexpr std::uint32_t kPtxTf32 = 11;  // and 12

void put_element(Object object, std::uint32_t ptx_code) {
  const bool is_tf32 = ptx_code == kPtxTf32 || ptx_code == kPtxTf32 + 1;
  put(object, kElement, is_tf32 ? ptx_code - kPtxTf32 + kPtxF32 : ptx_code);
  put(object, kTf32, is_tf32);
}

std::string decode_element(ConstObject object, TensorElement& element) {
  const std::uint32_t code = get(object, kElement);
  const bool is_tf32 = get(object, kTf32) != 0;
  const bool is_fp32 = code == kPtxF32 || code == kPtxF32 + 1;
  if (code == kPtxTf32 || code == kPtxTf32 + 1 || (is_tf32 && !is_fp32)) {
    return fmt::format(
        "tensor map: element type = {} with bit 16 (TF32) = {}; expected 0 to 10 or 13 to 15, and "
        "the bit only with 7 and 8",
        code, int{is_tf32});
  }
  element = kElementOfPtx[is_tf32 ? code - kPtxF32 + kPtxTf32 : code];
  return {};
}

std::string decode_swizzle(ConstObject object, TensorSwizzle& swizzle) {
  const std::uint32_t mode = get(object, kSwizzle) | get(object, kSwizzle96) << 2;
  const std::uint32_t atomicity = get(object, kAtomicity);
  for (std::size_t i = 0; i < std::size(kSwizzleCodes); ++i) {
    if (kSwizzleCodes[i].mode != mode || kSwizzleCodes[i].atomicity != atomicity) continue;
    swizzle = static_cast<TensorSwizzle>(i);
    return {};
  }
  return fmt::format(
      "tensor map: swizzle_atomicity = {} with swizzle_mode = {}; expected 0 with any mode from 0 "
      "to 4, or 1 to 3 with mode 3 (128B)",
      atomicity, mode);
}

/// The word with most fields.
std::string decode_modes(ConstObject object, TensorMapFields& fields) {
  if (std::ranges::all_of(object, [](std::byte b) { return b == std::byte{0}; })) {
    return "tensor map: all 128 bytes are 0; expected an object of cuTensorMapEncode* or its "
           "format";
  }
  const std::uint32_t unknown = word_at(object, 2) & kUnknownMode;
  if (unknown != 0) {
    return fmt::format(
        "tensor map: bytes 8 to 11 are {:#010x}, of which the bits {:#010x} mean nothing; expected "
        "an object of cuTensorMapEncode* or its format",
        word_at(object, 2), unknown);
  }
  fields.rank = get(object, kRank) + 1;
  if (fields.rank > kMaxTensorRank) {
    return fmt::format("tensor map: rank = {}; expected 1 to {}", fields.rank, kMaxTensorRank);
  }
  const std::uint32_t interleave = get(object, kInterleave);
  if (interleave > 2) {
    return fmt::format("tensor map: interleave = {}; expected 0 to 2", interleave);
  }
  fields.interleave = static_cast<TensorInterleave>(interleave);
  fields.fill = static_cast<TensorFill>(get(object, kNanFill));
  fields.l2_promotion = static_cast<TensorL2Promotion>(get(object, kL2Promotion));
  fields.mode = get(object, kIsIm2col) != 0 ? TensorMode::kIm2col : TensorMode::kTiled;
  if (std::string problem = decode_element(object, fields.element); !problem.empty()) {
    return problem;
  }
  return decode_swizzle(object, fields.swizzle);
}

void decode_im2col(ConstObject object, TensorMapFields& fields) {
  fields.channels_per_pixel = get(object, kInnerBox) + 1;
  fields.pixels_per_column = get(object, kPixels) + 1;
  for (std::size_t i = 0; i + 2 < fields.rank; ++i) {
    fields.lower_corner[i] = get_signed(object, corner_bits(fields.rank, i, false));
    fields.upper_corner[i] = get_signed(object, corner_bits(fields.rank, i, true));
  }
}

void encode_im2col(const TensorMapFields& fields, Object object) {
  put(object, kInnerBox, fields.channels_per_pixel - 1);
  put(object, kPixels, fields.pixels_per_column - 1);
  for (std::size_t i = 0; i + 2 < fields.rank; ++i) {
    const auto put_corner = [&](std::int32_t corner, bool is_upper) {
      put(object, corner_bits(fields.rank, i, is_upper), static_cast<std::uint32_t>(corner));
    };
    put_corner(fields.lower_corner[i], false);
    put_corner(fields.upper_corner[i], true);
  }
}

/// What the driver leaves behind the format: bytes of a box, and of the swizzle's pattern.
void put_notes(const TensorMapFields& fields, Object object) {
  const std::uint32_t span = swizzle_span_bytes(fields.swizzle);
  put_word(object, kBoxBytesWord, static_cast<std::uint32_t>(box_bytes(fields)));
  put_word(object, kPatternBytesWord, span == 0 ? 16 : 8 * span);
}

struct FieldPlace {
  const char* name;
  std::uint32_t num_ordinals;  // 0: the ordinal is ignored
  std::uint64_t min, max;      // of the value
  std::uint64_t multiple = 1;
};

FieldPlace place_of(TensorMapField field) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  constexpr std::uint64_t kMaxStride = (std::uint64_t{1} << 40) - 16;
  constexpr FieldPlace kPlaces[] = {{".global_address", 0, 0, kAny},
                                    {".rank", 0, 0, kMaxTensorRank - 1},
                                    {".box_dim", 5, 1, 256},
                                    {".global_dim", 5, 0, 0xffffffff},
                                    {".global_stride", 4, 0, kMaxStride, 16},
                                    {".element_stride", 5, 1, 8},
                                    {".elemtype", 0, 0, std::size(kElementOfPtx) - 1},
                                    {".interleave_layout", 0, 0, 2},
                                    {".swizzle_mode", 0, 0, kMaxSwizzleMode},
                                    {".swizzle_atomicity", 0, 0, kMaxSwizzleAtomicity},
                                    {".fill_mode", 0, 0, 1}};
  return kPlaces[static_cast<std::size_t>(field)];
}

std::string check_value(const FieldPlace& place, std::uint32_t ordinal, std::uint64_t value) {
  if (place.num_ordinals != 0 && ordinal >= place.num_ordinals) {
    return fmt::format("tensormap.replace: ordinal {} of {}; expected 0 to {}", ordinal, place.name,
                       place.num_ordinals - 1);
  }
  if (value < place.min || value > place.max) {
    return fmt::format("tensormap.replace: {} = {}; expected {} to {}", place.name, value,
                       place.min, place.max);
  }
  if (value % place.multiple == 0) return {};
  return fmt::format("tensormap.replace: {} = {}; expected a multiple of {}", place.name, value,
                     place.multiple);
}

void store_field(Object object, TensorMapField field, std::uint32_t ordinal, std::uint64_t value) {
  switch (field) {
    case TensorMapField::kGlobalAddress:
      return put_address(object, value);
    case TensorMapField::kRank:
      return put(object, kRank, value);
    case TensorMapField::kBoxDim:
      return put(object, box_bits(ordinal), value - 1);
    case TensorMapField::kGlobalDim:
      return put(object, dim_bits(ordinal), value - 1);
    case TensorMapField::kGlobalStride:
      return put_stride(object, ordinal, value);
    case TensorMapField::kElementStride:
      return put(object, element_stride_bits(ordinal), value - 1);
    case TensorMapField::kElemtype:
      return put_element(object, static_cast<std::uint32_t>(value));
    case TensorMapField::kInterleaveLayout:
      return put(object, kInterleave, value);
    case TensorMapField::kSwizzleMode:
      return put_swizzle_mode(object, value);
    case TensorMapField::kSwizzleAtomicity:
      return put(object, kAtomicity, value);
    case TensorMapField::kFillMode:
      return put(object, kNanFill, value);
  }
}

}  // namespace

void encode(const TensorMapFields& fields, Object object) {
  std::ranges::fill(object, std::byte{0});
  put_address(object, fields.address);
  put(object, kIsIm2col, fields.mode == TensorMode::kIm2col);
  put(object, kRank, fields.rank - 1);
  const auto element = std::ranges::find(kElementOfPtx, fields.element) - kElementOfPtx;
  put_element(object, static_cast<std::uint32_t>(element));
  put(object, kInterleave, static_cast<unsigned>(fields.interleave));
  const SwizzleCode swizzle = kSwizzleCodes[static_cast<std::size_t>(fields.swizzle)];
  put_swizzle_mode(object, swizzle.mode);
  put(object, kAtomicity, swizzle.atomicity);
  put(object, kNanFill, static_cast<unsigned>(fields.fill));
  put(object, kL2Promotion, static_cast<unsigned>(fields.l2_promotion));
  for (std::size_t i = 0; i < fields.rank; ++i) {
    put(object, dim_bits(i), fields.dims[i] - 1);
    put(object, element_stride_bits(i), fields.element_strides[i] - 1);
    if (i > 0) put_stride(object, i - 1, fields.strides_bytes[i - 1]);
    if (fields.mode == TensorMode::kTiled) put(object, box_bits(i), fields.box[i] - 1);
  }
  if (fields.mode == TensorMode::kIm2col) encode_im2col(fields, object);
  put_notes(fields, object);
}

DecodedTensorMap decode_tensor_map(ConstObject object) {
  DecodedTensorMap decoded;
  TensorMapFields& fields = decoded.fields;
  decoded.problem = decode_modes(object, fields);
  if (!decoded.problem.empty()) return decoded;
  if ((word_at(object, 13) & kUnknownStrides) != 0) {
    decoded.problem = fmt::format(
        "tensor map: bytes 52 to 55 are {:#010x}, of which the bits {:#010x} mean nothing",
        word_at(object, 13), word_at(object, 13) & kUnknownStrides);
    return decoded;
  }
  fields.address = get_address(object);
  for (std::size_t i = 0; i < fields.rank; ++i) {
    fields.dims[i] = std::uint64_t{get(object, dim_bits(i))} + 1;
    fields.element_strides[i] = get(object, element_stride_bits(i)) + 1;
    if (i > 0) fields.strides_bytes[i - 1] = get_stride(object, i - 1);
    if (fields.mode == TensorMode::kTiled) fields.box[i] = get(object, box_bits(i)) + 1;
  }
  if (fields.mode == TensorMode::kIm2col && fields.rank >= 3) decode_im2col(object, fields);
  decoded.problem = validate(fields);
  return decoded;
}

std::string replace_field(Object object, TensorMapField field, std::uint32_t ordinal,
                          std::uint64_t value) {
  std::string problem = check_value(place_of(field), ordinal, value);
  if (problem.empty()) store_field(object, field, ordinal, value);
  return problem;
}

void replace_address(Object object, std::uint64_t address) noexcept {
  put_address(object, address);
}

}  // namespace tilewright::sim
