// The rules of cuTensorMapEncodeTiled, one require_rule() each.
#include "base/error.h"
#include "device/tensor_map.h"

namespace tilewright::device {

namespace {

constexpr std::size_t kMaxRank = 5;
constexpr std::uint64_t kMaxDim = std::uint64_t{1} << 32;
constexpr std::uint64_t kMaxStride = std::uint64_t{1} << 40;  // exclusive
constexpr std::uint32_t kMaxBox = 256;
constexpr std::uint32_t kMaxElementStride = 8;
constexpr std::uint32_t kPaddedGroup = 128;  // elements that the 16-byte aligned types come in

template <class... Args>
void require_rule(bool holds, const TensorMapSpec& spec, fmt::format_string<Args...> format,
                  Args&&... args) {
  if (holds) return;
  fail(ErrorKind::kInvalidArgument, "tensor map {}: {}", spec.name,
       fmt::format(format, std::forward<Args>(args)...));
}

/// Sub-byte elements that are spread over 16-byte groups in shared memory.
bool is_padded(TensorMapType type) {
  return type == TensorMapType::k16U4Align16B || type == TensorMapType::k16U6Align16B;
}

/// What dims[0] must be a multiple of.
std::uint64_t dim_group_of(TensorMapType type) {
  if (is_padded(type)) return kPaddedGroup;
  return type == TensorMapType::k16U4Align8B ? 2 : 1;
}

bool is_floating(TensorMapType type) {
  switch (type) {
    case TensorMapType::kFloat16:
    case TensorMapType::kFloat32:
    case TensorMapType::kFloat64:
    case TensorMapType::kBfloat16:
    case TensorMapType::kFloat32Ftz:
    case TensorMapType::kTfloat32:
    case TensorMapType::kTfloat32Ftz:
      return true;
    default:
      return false;
  }
}

/// Bytes within which the swizzle permutes; 0 without one.
std::uint64_t span_of(TensorMapSwizzle swizzle) {
  switch (swizzle) {
    case TensorMapSwizzle::kNone:
      return 0;
    case TensorMapSwizzle::k32B:
      return 32;
    case TensorMapSwizzle::k64B:
      return 64;
    default:
      return 128;
  }
}

/// What address and strides must be multiples of.
std::uint64_t alignment_of(const TensorMapSpec& spec) {
  return spec.interleave == TensorMapInterleave::k32B || is_padded(spec.type) ? 32 : 16;
}

void validate_rank(const TensorMapSpec& spec) {
  const std::size_t rank = spec.dims.size();
  const std::size_t min_rank = spec.interleave == TensorMapInterleave::kNone ? 1 : 3;
  require_rule(rank >= min_rank && rank <= kMaxRank, spec,
               "dims has {} entries; expected {} to {} {} interleave", rank, min_rank, kMaxRank,
               min_rank == 1 ? "without" : "with");
  require_rule(spec.strides_bytes.size() == rank - 1, spec,
               "strides_bytes has {} entries for {} dims; expected {} (dims[0] is contiguous)",
               spec.strides_bytes.size(), rank, rank - 1);
  require_rule(spec.box.size() == rank, spec, "box has {} entries for {} dims", spec.box.size(),
               rank);
  require_rule(spec.element_strides.empty() || spec.element_strides.size() == rank, spec,
               "element_strides has {} entries for {} dims; leave it empty for 1 everywhere",
               spec.element_strides.size(), rank);
}

void validate_memory(const TensorMapSpec& spec) {
  const std::uint64_t alignment = alignment_of(spec);
  require_rule(spec.address != 0, spec, "address is null");
  require_rule(spec.address % alignment == 0, spec, "address = {:#x} is not a multiple of {}",
               spec.address, alignment);
  for (std::size_t i = 0; i < spec.dims.size(); ++i) {
    require_rule(spec.dims[i] >= 1 && spec.dims[i] <= kMaxDim, spec,
                 "dims[{}] = {}; expected 1 to 2^32", i, spec.dims[i]);
  }
  const std::uint64_t group = dim_group_of(spec.type);
  require_rule(spec.dims[0] % group == 0, spec, "dims[0] = {} is not a multiple of {}, as {} needs",
               spec.dims[0], group, name_of(spec.type));
  for (std::size_t i = 0; i < spec.strides_bytes.size(); ++i) {
    const std::uint64_t stride = spec.strides_bytes[i];
    require_rule(stride % alignment == 0, spec,
                 "strides_bytes[{}] = {} is not a multiple of {}; pad the rows", i, stride,
                 alignment);
    require_rule(stride < kMaxStride, spec, "strides_bytes[{}] = {}; expected less than 2^40", i,
                 stride);
  }
}

void validate_box(const TensorMapSpec& spec) {
  for (std::size_t i = 0; i < spec.box.size(); ++i) {
    require_rule(spec.box[i] >= 1 && spec.box[i] <= kMaxBox, spec,
                 "box[{}] = {}; expected 1 to {}. Copy several boxes", i, spec.box[i], kMaxBox);
  }
  require_rule(!is_padded(spec.type) || spec.box[0] == kPaddedGroup, spec,
               "box[0] = {}; {} needs {}", spec.box[0], name_of(spec.type), kPaddedGroup);
  for (std::size_t i = 0; i < spec.element_strides.size(); ++i) {
    const std::uint32_t stride = spec.element_strides[i];
    require_rule(stride >= 1 && stride <= kMaxElementStride, spec,
                 "element_strides[{}] = {}; expected 1 to {}", i, stride, kMaxElementStride);
  }
  if (spec.interleave != TensorMapInterleave::kNone) return;
  const std::uint32_t first_stride = spec.element_strides.empty() ? 1 : spec.element_strides[0];
  require_rule(
      first_stride == 1, spec,
      "element_strides[0] = {}; the hardware ignores it without interleave, so it must be 1",
      first_stride);
  const std::uint64_t inner_bits =
      std::uint64_t{spec.box[0]} * static_cast<std::uint64_t>(element_bits(spec.type));
  require_rule(inner_bits % 128 == 0, spec,
               "box[0] = {} of {} bits are {} bytes; expected a multiple of 16", spec.box[0],
               element_bits(spec.type), static_cast<double>(inner_bits) / 8);
  const std::uint64_t span = span_of(spec.swizzle);
  require_rule(span == 0 || inner_bits / 8 <= span, spec,
               "box[0] = {} of {} bits are {} bytes; swizzle {} spans {}. Use a narrower box",
               spec.box[0], element_bits(spec.type), inner_bits / 8, name_of(spec.swizzle), span);
}

bool is_swizzle_of_padded(TensorMapType type, TensorMapSwizzle swizzle) {
  return swizzle == TensorMapSwizzle::kNone || swizzle == TensorMapSwizzle::k128B ||
         swizzle == TensorMapSwizzle::k128BAtom32B ||
         (swizzle == TensorMapSwizzle::k128BAtom64B && type == TensorMapType::k16U6Align16B);
}

void validate_modes(const TensorMapSpec& spec) {
  require_rule(
      spec.interleave != TensorMapInterleave::k32B || spec.swizzle == TensorMapSwizzle::k32B, spec,
      "swizzle = {} with interleave 32B; expected k32B", name_of(spec.swizzle));
  require_rule(
      spec.interleave == TensorMapInterleave::kNone || spec.type != TensorMapType::k16U6Align16B,
      spec, "type k16U6Align16B cannot be interleaved");
  require_rule(!is_padded(spec.type) || is_swizzle_of_padded(spec.type, spec.swizzle), spec,
               "swizzle = {} with type {}; expected kNone, k128B or k128BAtom32B{}",
               name_of(spec.swizzle), name_of(spec.type),
               spec.type == TensorMapType::k16U6Align16B ? " or, for stores, k128BAtom64B" : "");
  require_rule(spec.oob_fill == TensorMapOobFill::kZeros || is_floating(spec.type), spec,
               "oob_fill = kNan with type {}; only floating types have a NaN", name_of(spec.type));
}

}  // namespace

void validate(const TensorMapSpec& spec) {
  validate_rank(spec);
  validate_memory(spec);
  validate_box(spec);
  validate_modes(spec);
}

}  // namespace tilewright::device
