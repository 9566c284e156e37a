#include "sim/async/tensor_copy.h"

#include "base/error.h"

#include <algorithm>
#include <cstring>

namespace tilewright::sim {

namespace {

constexpr std::uint32_t kTensorSharedAlignBytes = 128;

std::uint32_t inner_elems(const TensorMapFields& map) {
  return map.mode == TensorMode::kTiled ? map.box[0] : map.channels_per_pixel;
}

std::uint32_t ceil_div(std::uint32_t a, std::uint32_t b) {
  return (a + b - 1) / b;
}

/// Eight bytes of what is read outside of the tensor. (f16 as recorded on an H200.)
std::uint64_t fill_pattern(const TensorMapFields& map) {
  if (map.fill == TensorFill::kZeros) return 0;
  if (map.element == TensorElement::kF16) return 0x7ff77ff77ff77ff7;
  switch (element_bits(map.element)) {
    case 16:
      return 0x7fff7fff7fff7fff;
    case 32:
      return 0x7fffffff7fffffff;
    default:
      return 0x7fffffffffffffff;
  }
}

bool is_converted(TensorElement element) {
  return element >= TensorElement::kF32Ftz && element <= TensorElement::kTf32Ftz;
}

std::uint32_t converted(TensorElement element, std::uint32_t word) {
  const std::uint32_t exponent = word & 0x7f800000;
  if (element != TensorElement::kTf32 && exponent == 0) return word & 0x80000000;
  if (element == TensorElement::kF32Ftz || exponent == 0x7f800000) return word;
  return (word + 0x0fff + ((word >> 13) & 1)) & ~std::uint32_t{0x1fff};
}

void convert(TensorElement element, std::byte* bytes, std::size_t size_bytes) {
  for (std::size_t at = 0; at + 4 <= size_bytes; at += 4) {
    std::uint32_t word;
    std::memcpy(&word, bytes + at, 4);
    word = converted(element, word);
    std::memcpy(bytes + at, &word, 4);
  }
}

/// A row as it is in global memory and as it lies in shared memory, granule by granule:
/// visit(offset in the row, offset from shared_address, bytes).
template <class Visit>
void for_each_granule(const TensorCopy& copy, const TensorRow& row, Visit&& visit) {
  const TensorMapFields& map = *copy.map;
  const std::uint32_t begin = copy.shared_address + row.shared_offset;
  const std::uint32_t end = row.before + row.inside + row.after;
  if (is_padded(map.element)) {
    const std::uint32_t group = map.element == TensorElement::k16U6Align16B ? 12 : 8;
    for (std::uint32_t at = 0; at < end; at += group) {
      const std::uint32_t linear = begin + at / group * 16;
      visit(at, swizzled(map.swizzle, linear) - copy.shared_address, group);
    }
    return;
  }
  // What is changed of an address is the same for all of a line of 128 bytes.
  const bool is_flipped = map.swizzle == TensorSwizzle::k128BAtom32BFlip8B;
  for (std::uint32_t at = 0; at < end;) {
    const std::uint32_t change = swizzled(map.swizzle, begin + at) ^ (begin + at);
    const std::uint32_t stop = std::min(end, at + 128 - (begin + at) % 128);
    if (is_flipped) {
      for (; at < stop; at += 8) visit(at, ((begin + at) ^ change) - copy.shared_address, 8u);
    } else {
      for (; at < stop; at += 16) visit(at, ((begin + at) ^ change) - copy.shared_address, 16u);
    }
  }
}

bool is_contiguous(const TensorMapFields& map) {
  return map.swizzle == TensorSwizzle::kNone && !is_padded(map.element);
}

std::string check_rows4(const TensorMapFields& map) {
  if (map.mode == TensorMode::kTiled && map.rank == 2 && map.box[1] == 1) return {};
  return fmt::format(
      "tensor copy: gather4 and scatter4 need a tiled map of rank 2 with box[1] = 1; this one has "
      "rank {} and box[1] = {}",
      map.rank, map.box[1]);
}

}  // namespace

std::string check_store_start(const TensorCopy& copy) {
  for (std::uint32_t i = 0; i < copy.map->rank; ++i) {
    if (copy.coordinates[i] < 0) {
      return fmt::format("tensor copy: coordinate {} = {}; a store may not begin before the tensor",
                         i, copy.coordinates[i]);
    }
  }
  return {};
}

std::string check(const TensorCopy& copy) {
  const TensorMapFields& map = *copy.map;
  if (map.interleave != TensorInterleave::kNone) {
    return "tensor copy: interleaved tensor maps are not simulated; use one without interleave";
  }
  if (copy.shape == TensorCopyShape::kRows4) {
    if (std::string problem = check_rows4(map); !problem.empty()) return problem;
  }
  if (copy.shared_address % kTensorSharedAlignBytes != 0) {
    return fmt::format("tensor copy: shared address {:#x} is not a multiple of {}",
                       copy.shared_address, kTensorSharedAlignBytes);
  }
  return check_start(map, copy.coordinates[0]);
}

TensorRowBytes row_bytes(const TensorMapFields& map) {
  TensorRowBytes bytes;
  bytes.global = inner_elems(map) * element_bits(map.element) / 8;
  bytes.shared = is_padded(map.element) ? inner_elems(map) : bytes.global;
  bytes.pitch = std::max(bytes.shared, swizzle_span_bytes(map.swizzle));
  return bytes;
}

std::uint32_t num_rows(const TensorCopy& copy) {
  const TensorMapFields& map = *copy.map;
  if (copy.shape == TensorCopyShape::kRows4) return 4;
  if (map.mode == TensorMode::kIm2col) return map.pixels_per_column;
  std::uint32_t rows = 1;
  for (std::size_t i = 1; i < map.rank; ++i) rows *= ceil_div(map.box[i], map.element_strides[i]);
  return rows;
}

std::uint32_t transaction_bytes(const TensorCopy& copy) {
  return num_rows(copy) * row_bytes(*copy.map).global;
}

std::uint32_t shared_bytes(const TensorCopy& copy) {
  return num_rows(copy) * row_bytes(*copy.map).pitch;
}

std::string check_tensor_reduction(const TensorMapFields& map, ReduceOp op) {
  switch (map.element) {
    case TensorElement::kU32:
    case TensorElement::kS32:
    case TensorElement::kU64:
    case TensorElement::kS64:
    case TensorElement::kF16:
    case TensorElement::kBf16:
    case TensorElement::kF32:
    case TensorElement::kF32Ftz:
      return check_reduction(op, reduce_type_of(map.element));
    default:
      return fmt::format("reduction: tensor maps of {} elements have none", name_of(map.element));
  }
}

ReduceType reduce_type_of(TensorElement element) {
  switch (element) {
    case TensorElement::kU32:
      return ReduceType::kU32;
    case TensorElement::kS32:
      return ReduceType::kS32;
    case TensorElement::kU64:
      return ReduceType::kU64;
    case TensorElement::kS64:
      return ReduceType::kS64;
    case TensorElement::kF16:
      return ReduceType::kF16;
    case TensorElement::kBf16:
      return ReduceType::kBf16;
    case TensorElement::kF32:
    case TensorElement::kF32Ftz:
      return ReduceType::kF32;
    default:
      fail(ErrorKind::kInternal, "reduce_type_of: {} elements do not reduce", name_of(element));
  }
}

namespace tensor_copy_detail {

RowWalk::RowWalk(const TensorCopy& copy) : copy_(copy), bytes_(row_bytes(*copy.map)) {
  const TensorMapFields& map = *copy.map;
  count_.fill(1);
  for (std::size_t i = 0; i < map.rank; ++i) {
    position_[i] = copy.coordinates[i];
    if (i != 0 && map.mode == TensorMode::kTiled) {
      count_[i] = ceil_div(map.box[i], map.element_strides[i]);
    }
  }
}

TensorRow RowWalk::row() const {
  const TensorMapFields& map = *copy_.map;
  TensorRow row;
  row.shared_offset = row_idx_ * bytes_.pitch;
  const bool is_im2col = map.mode == TensorMode::kIm2col;
  // Unsigned, so that what is outside wraps instead of overflowing; it is not used then.
  std::uint64_t address = map.address;
  bool is_inside = true;
  for (std::size_t i = 1; i < map.rank; ++i) {
    const bool is_offset = is_im2col && i + 1 < map.rank;
    const std::int64_t x = position_[i] + (is_offset ? copy_.im2col_offsets[i - 1] : 0);
    is_inside = is_inside && x >= 0 && static_cast<std::uint64_t>(x) < map.dims[i];
    address += static_cast<std::uint64_t>(x) * map.strides_bytes[i - 1];
  }
  const std::int64_t bits = element_bits(map.element);
  const std::int64_t begin = position_[0] * bits / 8;  // exact: a multiple of 16, see check_start()
  const std::int64_t end = begin + bytes_.global;
  const std::int64_t tensor_end = static_cast<std::int64_t>(map.dims[0]) * bits / 8;
  const std::int64_t inside_begin = std::clamp<std::int64_t>(0, begin, end);
  const std::int64_t inside_end = std::clamp(tensor_end, inside_begin, end);
  row.before = static_cast<std::uint32_t>(is_inside ? inside_begin - begin : bytes_.global);
  row.inside = static_cast<std::uint32_t>(is_inside ? inside_end - inside_begin : 0);
  row.after = bytes_.global - row.before - row.inside;
  if (row.inside != 0) row.global_address = address + static_cast<std::uint64_t>(inside_begin);
  return row;
}

void RowWalk::advance() {
  ++row_idx_;
  if (copy_.shape == TensorCopyShape::kRows4) {
    position_[1] = copy_.coordinates[1 + row_idx_];
  } else if (copy_.map->mode == TensorMode::kIm2col) {
    advance_im2col();
  } else {
    advance_box();
  }
}

void RowWalk::advance_box() {
  for (std::size_t i = 1; i < copy_.map->rank; ++i) {
    position_[i] += copy_.map->element_strides[i];
    if (++idx_[i] < count_[i]) return;
    idx_[i] = 0;
    position_[i] = copy_.coordinates[i];
  }
}

/// The pixels of the bounding box of one image after the other: from the lower corner to the last
/// pixel plus the upper corner, in steps of the element stride.
void RowWalk::advance_im2col() {
  const TensorMapFields& map = *copy_.map;
  for (std::size_t i = 1; i + 1 < map.rank; ++i) {
    position_[i] += map.element_strides[i];
    const std::int64_t last = static_cast<std::int64_t>(map.dims[i]) - 1 + map.upper_corner[i - 1];
    if (position_[i] <= last) return;
    position_[i] = map.lower_corner[i - 1];
  }
  position_[map.rank - 1] += map.element_strides[map.rank - 1];
}

void load_row(const TensorCopy& copy, const TensorRow& row, const std::byte* global,
              std::byte* shared) {
  const TensorMapFields& map = *copy.map;
  std::array<std::byte, kMaxRowBytes> buffer;
  const std::byte* from = global;
  const std::uint32_t size = row.before + row.inside + row.after;
  if (row.inside != size || is_converted(map.element)) {
    const std::uint64_t pattern = fill_pattern(map);
    for (std::size_t at = 0; at < size; at += 8) std::memcpy(&buffer[at], &pattern, 8);
    if (row.inside != 0) std::memcpy(&buffer[row.before], global, row.inside);
    if (is_converted(map.element)) convert(map.element, &buffer[row.before], row.inside);
    from = buffer.data();
  }
  if (is_contiguous(map)) {
    std::memcpy(shared + row.shared_offset, from, size);
    return;
  }
  for_each_granule(copy, row, [&](std::uint32_t at, std::uint32_t offset, std::uint32_t bytes) {
    std::memcpy(shared + offset, from + at, bytes);
  });
}

const std::byte* collect_row(const TensorCopy& copy, const TensorRow& row, const std::byte* shared,
                             std::byte* buffer) {
  if (is_contiguous(*copy.map)) return shared + row.shared_offset + row.before;
  for_each_granule(copy, row, [&](std::uint32_t at, std::uint32_t offset, std::uint32_t bytes) {
    std::memcpy(buffer + at, shared + offset, bytes);
  });
  return buffer + row.before;
}

}  // namespace tensor_copy_detail

}  // namespace tilewright::sim
