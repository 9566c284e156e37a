#include "base/tensor.h"

#include <algorithm>
#include <array>
#include <new>
#include <utility>

namespace tilewright {
namespace {

struct DTypeRow {
  const char* name;
  int bits;
};

// In the order of the enumerators.
constexpr std::array<DTypeRow, 22> kDTypes = {{
    {"BOOL", 8},        {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"U8", 8},
    {"I8", 8},          {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8},
    {"F8_E5M2FNUZ", 8}, {"I16", 16},    {"U16", 16},    {"F16", 16},    {"BF16", 16},
    {"I32", 32},        {"U32", 32},    {"F32", 32},    {"C64", 64},    {"F64", 64},
    {"I64", 64},        {"U64", 64},
}};
static_assert(kDTypes.size() == static_cast<std::size_t>(DType::kU64) + 1);

const DTypeRow& row_of(DType dtype) noexcept {
  return kDTypes[static_cast<std::size_t>(dtype)];
}

/// Product of the dimensions that are not 0; nothing if it reaches 2^63.
std::optional<std::int64_t> nonzero_product(std::span<const std::int64_t> shape) {
  std::int64_t product = 1;
  for (const std::int64_t dim : shape) {
    if (dim != 0 && __builtin_mul_overflow(product, dim, &product)) return std::nullopt;
  }
  return product;
}

}  // namespace

int bits_per_elem(DType dtype) noexcept {
  return row_of(dtype).bits;
}

const char* to_string(DType dtype) noexcept {
  return row_of(dtype).name;
}

std::optional<DType> dtype_from_string(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kDTypes.size(); ++i) {
    if (name == kDTypes[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape) {
  checked_num_elems(shape, "contiguous_strides");
  std::vector<std::int64_t> strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

TensorView contiguous_view(void* data, DType dtype, std::vector<std::int64_t> shape) {
  auto strides = contiguous_strides(shape);
  return {data, dtype, std::move(shape), std::move(strides)};
}

ConstTensorView contiguous_view(const void* data, DType dtype, std::vector<std::int64_t> shape) {
  auto strides = contiguous_strides(shape);
  return {data, dtype, std::move(shape), std::move(strides)};
}

bool is_contiguous(const ConstTensorView& view) noexcept {
  if (std::ranges::find(view.shape, 0) != view.shape.end()) return true;
  std::int64_t stride = 1;
  for (std::size_t i = view.shape.size(); i-- > 0;) {
    if (view.shape[i] == 1) continue;
    if (view.strides[i] != stride) return false;
    stride *= view.shape[i];
  }
  return true;
}

std::string shape_text(std::span<const std::int64_t> shape) {
  constexpr std::size_t kMaxDims = 8;
  if (shape.size() <= kMaxDims) return fmt::format("[{}]", fmt::join(shape, ", "));
  return fmt::format("[{}, ... {} dimensions]", fmt::join(shape.first(kMaxDims), ", "),
                     shape.size());
}

std::int64_t checked_num_elems(std::span<const std::int64_t> shape, std::string_view what,
                               ErrorKind kind) {
  for (const std::int64_t dim : shape) {
    if (dim < 0) {
      fail(kind, "{}: shape {} has the dimension {}; dimensions are 0 or more", what,
           shape_text(shape), dim);
    }
  }
  const auto product = nonzero_product(shape);
  if (!product) {
    fail(kind, "{}: shape {} has too many elements; at most 2^63 - 1 fit", what, shape_text(shape));
  }
  return std::ranges::find(shape, 0) == shape.end() ? *product : 0;
}

std::int64_t checked_num_bytes(DType dtype, std::span<const std::int64_t> shape,
                               std::string_view what, ErrorKind kind) {
  const std::int64_t num_elems = checked_num_elems(shape, what, kind);
  std::int64_t num_bits = 0;
  if (__builtin_mul_overflow(num_elems, std::int64_t{bits_per_elem(dtype)}, &num_bits)) {
    fail(kind, "{}: {} elements of {} are too large; at most 2^63 - 1 bits fit", what, num_elems,
         to_string(dtype));
  }
  if (num_bits % 8 != 0) {
    fail(kind,
         "{}: shape {} of {} takes {} bits, not a whole number of bytes; pad the last dimension",
         what, shape_text(shape), to_string(dtype), num_bits);
  }
  return num_bits / 8;
}

std::span<const std::byte> contiguous_bytes(const ConstTensorView& view, std::string_view what) {
  const std::int64_t num_bytes = checked_num_bytes(view.dtype, view.shape, what);
  if (view.strides.size() != view.shape.size() || !is_contiguous(view)) {
    fail(ErrorKind::kUnsupported,
         "{}: shape {} with strides {} is not contiguous; make it contiguous first", what,
         shape_text(view.shape), shape_text(view.strides));
  }
  return {static_cast<const std::byte*>(view.data), static_cast<std::size_t>(num_bytes)};
}

HostTensor::HostTensor(DType dtype, std::vector<std::int64_t> shape)
    : dtype_(dtype), shape_(std::move(shape)), num_elems_(checked_num_elems(shape_, "HostTensor")) {
  const std::int64_t num_bytes = checked_num_bytes(dtype, shape_, "HostTensor");
  try {
    bytes_.resize(static_cast<std::size_t>(num_bytes));
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::kOutOfMemory, "HostTensor: no host memory for {} bytes (shape {} of {})",
         num_bytes, shape_text(shape_), to_string(dtype_));
  }
}

HostTensor::HostTensor(const ConstTensorView& view) : HostTensor(view.dtype, view.shape) {
  const auto source = contiguous_bytes(view, "HostTensor");
  std::ranges::copy(source, bytes_.begin());
}

void HostTensor::require_elem_type(bool is_match, std::size_t size_bytes) const {
  if (is_match) return;
  fail(ErrorKind::kInvalidArgument,
       "HostTensor: elements are {} ({} bits) and cannot be read as the C++ type asked for, of {} "
       "bits; use the type of that kind and width, an unsigned integer of that width, or bytes()",
       to_string(dtype_), bits_per_elem(dtype_), 8 * size_bytes);
}

}  // namespace tilewright
