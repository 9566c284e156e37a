// The rules of cuTensorMapEncode*, one refusal each.
#include "sim/async/tensor_map.h"

#include <utility>

#include <fmt/format.h>

namespace tilewright::sim {

namespace {

constexpr std::uint64_t kMaxDim = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;  // exclusive
constexpr std::uint32_t kMaxBox = 256;
constexpr std::uint32_t kMaxElementStride = 8;
constexpr std::uint32_t kMaxChannels = 256;
constexpr std::uint32_t kMaxPixels = 1024;
constexpr std::uint64_t kMaxBoxBytes = 228 << 10;  // the shared memory of an SM
constexpr std::uint32_t kPaddedGroup = 128;        // elements that the padded types come in

template <class... Args>
std::string refusal(fmt::format_string<Args...> format, Args&&... args) {
  return "tensor map: " + fmt::format(format, std::forward<Args>(args)...);
}

std::uint64_t dim_group_of(TensorElement element) {
  if (is_padded(element)) return kPaddedGroup;
  return element == TensorElement::k16U4Align8B ? 2 : 1;
}

std::string check_rank(const TensorMapFields& fields) {
  const bool is_spatial =
      fields.interleave != TensorInterleave::kNone || fields.mode == TensorMode::kIm2col;
  const std::uint32_t min_rank = is_spatial ? 3 : 1;
  if (fields.rank >= min_rank && fields.rank <= kMaxTensorRank) return {};
  return refusal("rank = {}; expected {} to {} {}", fields.rank, min_rank, kMaxTensorRank,
                 is_spatial ? "with interleave or im2col" : "without interleave");
}

std::string check_memory(const TensorMapFields& fields) {
  const bool is_32 = fields.interleave == TensorInterleave::k32B || is_padded(fields.element);
  const std::uint64_t alignment = is_32 ? 32 : 16;
  if (fields.address % alignment != 0) {
    return refusal("address = {:#x} is not a multiple of {}", fields.address, alignment);
  }
  for (std::size_t i = 0; i < fields.rank; ++i) {
    if (fields.dims[i] < 1 || fields.dims[i] > kMaxDim) {
      return refusal("dims[{}] = {}; expected 1 to 2^32", i, fields.dims[i]);
    }
  }
  const std::uint64_t group = dim_group_of(fields.element);
  if (fields.dims[0] % group != 0) {
    return refusal("dims[0] = {} is not a multiple of {}, as {} needs", fields.dims[0], group,
                   name_of(fields.element));
  }
  for (std::size_t i = 0; i + 1 < fields.rank; ++i) {
    const std::uint64_t stride = fields.strides_bytes[i];
    if (stride % alignment != 0) {
      return refusal("strides_bytes[{}] = {} is not a multiple of {}", i, stride, alignment);
    }
    if (stride >= kMaxStride) {
      return refusal("strides_bytes[{}] = {}; expected less than 2^40", i, stride);
    }
  }
  return {};
}

std::string check_element_strides(const TensorMapFields& fields) {
  for (std::size_t i = 0; i < fields.rank; ++i) {
    const std::uint32_t stride = fields.element_strides[i];
    if (stride < 1 || stride > kMaxElementStride) {
      return refusal("element_strides[{}] = {}; expected 1 to {}", i, stride, kMaxElementStride);
    }
  }
  return {};
}

/// The row that is contiguous in shared memory: box[0], or the channels of a pixel.
std::string check_inner(const TensorMapFields& fields, const char* name, std::uint32_t count) {
  if (is_padded(fields.element) && count != kPaddedGroup) {
    return refusal("{} = {}; {} needs {}", name, count, name_of(fields.element), kPaddedGroup);
  }
  const std::uint64_t bits = std::uint64_t{count} * element_bits(fields.element);
  if (bits % 128 != 0) {
    return refusal("{} = {} of {} are {} bytes; expected a multiple of 16", name, count,
                   name_of(fields.element), static_cast<double>(bits) / 8);
  }
  const bool has_span = fields.interleave == TensorInterleave::kNone;
  const std::uint32_t span = has_span ? swizzle_span_bytes(fields.swizzle) : 0;
  if (span != 0 && bits / 8 > span) {
    return refusal("{} = {} of {} are {} bytes; swizzle {} spans {}", name, count,
                   name_of(fields.element), bits / 8, name_of(fields.swizzle), span);
  }
  return {};
}

std::string check_box(const TensorMapFields& fields) {
  for (std::size_t i = 0; i < fields.rank; ++i) {
    if (fields.box[i] < 1 || fields.box[i] > kMaxBox) {
      return refusal("box[{}] = {}; expected 1 to {}", i, fields.box[i], kMaxBox);
    }
  }
  return check_inner(fields, "box[0]", fields.box[0]);
}

/// The pixels between the corners must be some. With interleave the driver takes each dimension for
/// the one before it.
std::string check_bounding_box(const TensorMapFields& fields) {
  const std::size_t first = fields.interleave == TensorInterleave::kNone ? 1 : 0;
  for (std::size_t i = 0; i + 2 < fields.rank; ++i) {
    const auto dim = static_cast<std::int64_t>(fields.dims[i + first]);
    const std::int64_t pixels = dim + fields.upper_corner[i] - fields.lower_corner[i];
    if (pixels > 0) continue;
    return refusal(
        "lower corner[{}] = {} and upper corner[{}] = {} leave {} of the {} pixels of dims[{}]; "
        "expected at least 1",
        i, fields.lower_corner[i], i, fields.upper_corner[i], pixels, dim, i + first);
  }
  return {};
}

std::string check_im2col(const TensorMapFields& fields) {
  if (fields.channels_per_pixel < 1 || fields.channels_per_pixel > kMaxChannels) {
    return refusal("channels per pixel = {}; expected 1 to {}", fields.channels_per_pixel,
                   kMaxChannels);
  }
  if (fields.pixels_per_column < 1 || fields.pixels_per_column > kMaxPixels) {
    return refusal("pixels per column = {}; expected 1 to {}", fields.pixels_per_column,
                   kMaxPixels);
  }
  constexpr std::int32_t kCornerBits[] = {16, 8, 5};  // by the number of spatial dimensions
  const std::int32_t limit = 1 << (kCornerBits[fields.rank - 3] - 1);
  for (std::size_t i = 0; i + 2 < fields.rank; ++i) {
    for (const auto& [name, corner] :
         {std::pair{"lower", fields.lower_corner[i]}, std::pair{"upper", fields.upper_corner[i]}}) {
      if (corner >= -limit && corner < limit) continue;
      return refusal("{} corner[{}] = {}; expected {} to {} with rank {}", name, i, corner, -limit,
                     limit - 1, fields.rank);
    }
  }
  if (std::string problem = check_bounding_box(fields); !problem.empty()) return problem;
  return check_inner(fields, "channels per pixel", fields.channels_per_pixel);
}

bool is_swizzle_of_padded(TensorElement element, TensorSwizzle swizzle) {
  switch (swizzle) {
    case TensorSwizzle::kNone:
    case TensorSwizzle::k128B:
    case TensorSwizzle::k128BAtom32B:
      return true;
    case TensorSwizzle::k96B:
    case TensorSwizzle::k128BAtom64B:
      return element == TensorElement::k16U6Align16B;
    default:
      return false;
  }
}

std::string check_modes(const TensorMapFields& fields) {
  if (fields.interleave != TensorInterleave::kNone &&
      fields.element == TensorElement::k16U6Align16B) {
    return refusal("type {} cannot be interleaved", name_of(fields.element));
  }
  if (is_padded(fields.element) && !is_swizzle_of_padded(fields.element, fields.swizzle)) {
    return refusal("swizzle = {} with type {}; expected NONE, 128B or 128B_ATOM_32B",
                   name_of(fields.swizzle), name_of(fields.element));
  }
  if (fields.fill == TensorFill::kNan && !is_floating(fields.element)) {
    return refusal("fill = NaN with type {}; only floating types have a NaN",
                   name_of(fields.element));
  }
  return {};
}

std::string check_box_bytes(const TensorMapFields& fields) {
  const std::uint64_t bytes = box_bytes(fields);
  if (bytes <= kMaxBoxBytes) return {};
  return refusal("a box has {} bytes; expected at most the {} of shared memory", bytes,
                 kMaxBoxBytes);
}

}  // namespace

std::string validate_im2col_wide(const TensorMapFields& fields) {
  if (fields.swizzle == TensorSwizzle::k32B) {
    return refusal("swizzle = 32B with im2col wide; expected NONE, 64B, 128B or 128B_ATOM_32B");
  }
  return validate(fields);
}

std::string validate(const TensorMapFields& fields) {
  if (std::string problem = check_rank(fields); !problem.empty()) return problem;
  for (const auto check : {check_memory, check_modes, check_element_strides}) {
    if (std::string problem = check(fields); !problem.empty()) return problem;
  }
  std::string problem =
      fields.mode == TensorMode::kTiled ? check_box(fields) : check_im2col(fields);
  return problem.empty() ? check_box_bytes(fields) : problem;
}

}  // namespace tilewright::sim
