#include "sim/async/tensor_map.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kMagic = 0x4d544c54;  // "TLTM"

constexpr std::size_t kRankAt = 4;
constexpr std::size_t kElementAt = 5;
constexpr std::size_t kInterleaveAt = 6;
constexpr std::size_t kSwizzleModeAt = 7;
constexpr std::size_t kSwizzleAtomicityAt = 8;
constexpr std::size_t kFillAt = 9;
constexpr std::size_t kL2PromotionAt = 10;
constexpr std::size_t kModeAt = 11;
constexpr std::size_t kChannelsAt = 12;
constexpr std::size_t kPixelsAt = 14;
constexpr std::size_t kAddressAt = 16;
constexpr std::size_t kStridesAt = 24;
constexpr std::size_t kDimsAt = 56;
constexpr std::size_t kBoxAt = 96;
constexpr std::size_t kElementStridesAt = 106;
constexpr std::size_t kLowerCornerAt = 112;
constexpr std::size_t kUpperCornerAt = 118;

template <class T>
T get(std::span<const std::byte, kTensorMapBytes> object, std::size_t at) {
  T value;
  std::memcpy(&value, object.data() + at, sizeof value);
  return value;
}

/// What T cannot hold becomes the nearest value it can, which no rule allows either.
template <class T, class V>
void put(std::span<std::byte, kTensorMapBytes> object, std::size_t at, V value) {
  using Limits = std::numeric_limits<T>;
  const T stored = std::in_range<T>(value) ? static_cast<T>(value)
                   : value > V{}           ? Limits::max()
                                           : Limits::min();
  std::memcpy(object.data() + at, &stored, sizeof stored);
}

struct SwizzleCode {
  std::uint8_t mode, atomicity;
};

/// PTX's swizzle_mode and swizzle_atomicity by TensorSwizzle.
constexpr SwizzleCode kSwizzleCodes[] = {{0, 0}, {1, 0}, {2, 0}, {3, 0},
                                         {3, 1}, {3, 2}, {3, 3}, {4, 0}};
constexpr std::uint8_t kMaxSwizzleMode = 4;
constexpr std::uint8_t kMaxSwizzleAtomicity = 3;

/// The driver's code of an element type by PTX's.
constexpr TensorElement kElementOfPtx[] = {
    TensorElement::kU8,          TensorElement::kU16,         TensorElement::kU32,
    TensorElement::kS32,         TensorElement::kU64,         TensorElement::kS64,
    TensorElement::kF16,         TensorElement::kF32,         TensorElement::kF32Ftz,
    TensorElement::kF64,         TensorElement::kBf16,        TensorElement::kTf32,
    TensorElement::kTf32Ftz,     TensorElement::k16U4Align8B, TensorElement::k16U4Align16B,
    TensorElement::k16U6Align16B};

std::string decode_swizzle(std::uint8_t mode, std::uint8_t atomicity, TensorSwizzle& swizzle) {
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

/// One object's small fields that have only few values.
std::string decode_codes(std::span<const std::byte, kTensorMapBytes> object,
                         TensorMapFields& fields) {
  struct Code {
    const char* name;
    std::size_t at;
    std::uint8_t max;
  };
  constexpr Code kCodes[] = {{"rank - 1", kRankAt, 4},
                             {"element type", kElementAt, 15},
                             {"interleave", kInterleaveAt, 2},
                             {"fill", kFillAt, 1},
                             {"L2 promotion", kL2PromotionAt, 3},
                             {"mode", kModeAt, 1}};
  for (const Code& code : kCodes) {
    const auto value = get<std::uint8_t>(object, code.at);
    if (value > code.max) {
      return fmt::format("tensor map: {} = {}; expected 0 to {}", code.name, value, code.max);
    }
  }
  fields.rank = get<std::uint8_t>(object, kRankAt) + 1u;
  fields.element = static_cast<TensorElement>(get<std::uint8_t>(object, kElementAt));
  fields.interleave = static_cast<TensorInterleave>(get<std::uint8_t>(object, kInterleaveAt));
  fields.fill = static_cast<TensorFill>(get<std::uint8_t>(object, kFillAt));
  fields.l2_promotion = static_cast<TensorL2Promotion>(get<std::uint8_t>(object, kL2PromotionAt));
  fields.mode = static_cast<TensorMode>(get<std::uint8_t>(object, kModeAt));
  return decode_swizzle(get<std::uint8_t>(object, kSwizzleModeAt),
                        get<std::uint8_t>(object, kSwizzleAtomicityAt), fields.swizzle);
}

/// "" if value <= max.
std::string refuse_above(const char* name, std::uint64_t value, std::uint64_t max) {
  if (value <= max) return {};
  return fmt::format("tensormap.replace: {} = {}; expected 0 to {}", name, value, max);
}

struct FieldPlace {
  const char* name;
  std::uint32_t num_ordinals;  // 0: the ordinal is ignored
  std::uint64_t max;           // of the value
};

FieldPlace place_of(TensorMapField field) {
  constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
  constexpr FieldPlace kPlaces[] = {{".global_address", 0, kAny},
                                    {".rank", 0, kMaxTensorRank - 1},
                                    {".box_dim", 5, 0xffffffff},
                                    {".global_dim", 5, 0xffffffff},
                                    {".global_stride", 4, kAny},
                                    {".element_stride", 5, 0xffffffff},
                                    {".elemtype", 0, std::size(kElementOfPtx) - 1},
                                    {".interleave_layout", 0, 2},
                                    {".swizzle_mode", 0, kMaxSwizzleMode},
                                    {".swizzle_atomicity", 0, kMaxSwizzleAtomicity},
                                    {".fill_mode", 0, 1}};
  return kPlaces[static_cast<std::size_t>(field)];
}

void store_field(std::span<std::byte, kTensorMapBytes> object, TensorMapField field,
                 std::uint32_t ordinal, std::uint64_t value) {
  switch (field) {
    case TensorMapField::kGlobalAddress:
      return put<std::uint64_t>(object, kAddressAt, value);
    case TensorMapField::kRank:
      return put<std::uint8_t>(object, kRankAt, value);
    case TensorMapField::kBoxDim:
      return put<std::uint16_t>(object, kBoxAt + 2 * ordinal, value);
    case TensorMapField::kGlobalDim:
      return put<std::uint64_t>(object, kDimsAt + 8 * ordinal, value);
    case TensorMapField::kGlobalStride:
      return put<std::uint64_t>(object, kStridesAt + 8 * ordinal, value);
    case TensorMapField::kElementStride:
      return put<std::uint8_t>(object, kElementStridesAt + ordinal, value);
    case TensorMapField::kElemtype:
      return put<std::uint8_t>(object, kElementAt, static_cast<unsigned>(kElementOfPtx[value]));
    case TensorMapField::kInterleaveLayout:
      return put<std::uint8_t>(object, kInterleaveAt, value);
    case TensorMapField::kSwizzleMode:
      return put<std::uint8_t>(object, kSwizzleModeAt, value);
    case TensorMapField::kSwizzleAtomicity:
      return put<std::uint8_t>(object, kSwizzleAtomicityAt, value);
    case TensorMapField::kFillMode:
      return put<std::uint8_t>(object, kFillAt, value);
  }
}

}  // namespace

void encode(const TensorMapFields& fields, std::span<std::byte, kTensorMapBytes> object) {
  std::ranges::fill(object, std::byte{0});
  put<std::uint32_t>(object, 0, kMagic);
  put<std::uint8_t>(object, kRankAt, fields.rank - 1);  // rank 0 becomes 255
  put<std::uint8_t>(object, kElementAt, static_cast<unsigned>(fields.element));
  put<std::uint8_t>(object, kInterleaveAt, static_cast<unsigned>(fields.interleave));
  const SwizzleCode swizzle = kSwizzleCodes[static_cast<std::size_t>(fields.swizzle)];
  put<std::uint8_t>(object, kSwizzleModeAt, unsigned{swizzle.mode});
  put<std::uint8_t>(object, kSwizzleAtomicityAt, unsigned{swizzle.atomicity});
  put<std::uint8_t>(object, kFillAt, static_cast<unsigned>(fields.fill));
  put<std::uint8_t>(object, kL2PromotionAt, static_cast<unsigned>(fields.l2_promotion));
  put<std::uint8_t>(object, kModeAt, static_cast<unsigned>(fields.mode));
  put<std::uint16_t>(object, kChannelsAt, fields.channels_per_pixel);
  put<std::uint16_t>(object, kPixelsAt, fields.pixels_per_column);
  put<std::uint64_t>(object, kAddressAt, fields.address);
  for (std::size_t i = 0; i < kMaxTensorRank; ++i) {
    put<std::uint64_t>(object, kDimsAt + 8 * i, fields.dims[i]);
    put<std::uint16_t>(object, kBoxAt + 2 * i, fields.box[i]);
    put<std::uint8_t>(object, kElementStridesAt + i, fields.element_strides[i]);
    if (i < 4) put<std::uint64_t>(object, kStridesAt + 8 * i, fields.strides_bytes[i]);
    if (i < 3) put<std::int16_t>(object, kLowerCornerAt + 2 * i, fields.lower_corner[i]);
    if (i < 3) put<std::int16_t>(object, kUpperCornerAt + 2 * i, fields.upper_corner[i]);
  }
}

DecodedTensorMap decode_tensor_map(std::span<const std::byte, kTensorMapBytes> object) {
  DecodedTensorMap decoded;
  const auto magic = get<std::uint32_t>(object, 0);
  if (magic != kMagic) {
    decoded.problem = fmt::format(
        "tensor map: these 128 bytes are none (they begin with {:#010x}); expected an object from "
        "cuTensorMapEncode*, a copy of one, or zeros with every field replaced",
        magic);
    return decoded;
  }
  TensorMapFields& fields = decoded.fields;
  decoded.problem = decode_codes(object, fields);
  if (!decoded.problem.empty()) return decoded;
  fields.channels_per_pixel = get<std::uint16_t>(object, kChannelsAt);
  fields.pixels_per_column = get<std::uint16_t>(object, kPixelsAt);
  fields.address = get<std::uint64_t>(object, kAddressAt);
  for (std::size_t i = 0; i < kMaxTensorRank; ++i) {
    fields.dims[i] = get<std::uint64_t>(object, kDimsAt + 8 * i);
    fields.box[i] = get<std::uint16_t>(object, kBoxAt + 2 * i);
    fields.element_strides[i] = get<std::uint8_t>(object, kElementStridesAt + i);
    if (i < 4) fields.strides_bytes[i] = get<std::uint64_t>(object, kStridesAt + 8 * i);
    if (i < 3) fields.lower_corner[i] = get<std::int16_t>(object, kLowerCornerAt + 2 * i);
    if (i < 3) fields.upper_corner[i] = get<std::int16_t>(object, kUpperCornerAt + 2 * i);
  }
  decoded.problem = validate(fields);
  return decoded;
}

std::string replace_field(std::span<std::byte, kTensorMapBytes> object, TensorMapField field,
                          std::uint32_t ordinal, std::uint64_t value) {
  const auto magic = get<std::uint32_t>(object, 0);
  if (magic != kMagic && magic != 0) {
    return fmt::format(
        "tensormap.replace: the object is neither a tensor map nor zeros (it begins with {:#010x})",
        magic);
  }
  const FieldPlace place = place_of(field);
  if (place.num_ordinals != 0 && ordinal >= place.num_ordinals) {
    return fmt::format("tensormap.replace: ordinal {} of {}; expected 0 to {}", ordinal, place.name,
                       place.num_ordinals - 1);
  }
  if (std::string problem = refuse_above(place.name, value, place.max); !problem.empty()) {
    return problem;
  }
  put<std::uint32_t>(object, 0, kMagic);
  store_field(object, field, ordinal, value);
  return {};
}

std::string check_start(const TensorMapFields& fields, std::int32_t innermost) {
  const std::int64_t bits = element_bits(fields.element);
  const std::int64_t group = is_padded(fields.element) ? 128 : 128 / bits;
  if (innermost % group == 0) return {};
  return fmt::format(
      "tensor copy: innermost coordinate {} of {} elements; expected a multiple of {} ({} bytes). "
      "Start the box at one",
      innermost, name_of(fields.element), group, group * bits / 8);
}

std::uint32_t element_bits(TensorElement element) noexcept {
  constexpr std::uint8_t kBits[] = {8, 16, 32, 32, 64, 64, 16, 32, 64, 16, 32, 32, 32, 4, 4, 6};
  return kBits[static_cast<std::size_t>(element)];
}

bool is_padded(TensorElement element) noexcept {
  return element == TensorElement::k16U4Align16B || element == TensorElement::k16U6Align16B;
}

bool is_floating(TensorElement element) noexcept {
  return element >= TensorElement::kF16 && element <= TensorElement::kTf32Ftz;
}

std::uint32_t swizzle_span_bytes(TensorSwizzle swizzle) noexcept {
  constexpr std::uint8_t kSpans[] = {0, 32, 64, 128, 128, 128, 128, 96};
  return kSpans[static_cast<std::size_t>(swizzle)];
}

const char* name_of(TensorElement element) noexcept {
  constexpr const char* kNames[] = {"u8",       "u16",          "u32",           "s32",
                                    "u64",      "s64",          "f16",           "f32",
                                    "f64",      "bf16",         "f32.ftz",       "tf32",
                                    "tf32.ftz", "16U4_ALIGN8B", "16U4_ALIGN16B", "16U6_ALIGN16B"};
  return kNames[static_cast<std::size_t>(element)];
}

const char* name_of(TensorSwizzle swizzle) noexcept {
  constexpr const char* kNames[] = {
      "NONE",          "32B", "64B", "128B", "128B_ATOM_32B", "128B_ATOM_32B_FLIP_8B",
      "128B_ATOM_64B", "96B"};
  return kNames[static_cast<std::size_t>(swizzle)];
}

}  // namespace tilewright::sim
