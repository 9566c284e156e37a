// Sizes that cannot overflow, and tensors that own host memory.
#pragma once

#include "tilewright/tensor.h"

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tilewright {

/// Most dimensions that a tensor in a file may have; numpy's limit.
inline constexpr std::size_t kMaxRank = 64;

/// "[2, 3, 64]"; a shape of more than 8 dimensions is cut and its rank given, so that a message
/// stays short whatever a file claims.
std::string shape_text(std::span<const std::int64_t> shape);

/// Product of the dimensions, and the bytes of that many elements.
/// Note: the product of the dimensions that are not 0 has to fit too, although the tensor is empty
/// then; strides and partial products of such a shape would overflow.
/// Errors   of the given kind, beginning with `what`: a negative dimension; a size of 2^63 bits or
///          more; elements of fewer than 8 bits that do not fill their last byte
std::int64_t checked_num_elems(std::span<const std::int64_t> shape, std::string_view what,
                               ErrorKind kind = ErrorKind::kInvalidArgument);
std::int64_t checked_num_bytes(DType dtype, std::span<const std::int64_t> shape,
                               std::string_view what, ErrorKind kind = ErrorKind::kInvalidArgument);

/// The memory that a contiguous view in host memory shows.
/// Errors   Unsupported, beginning with `what`, if it is not contiguous; also as checked_num_bytes
std::span<const std::byte> contiguous_bytes(const ConstTensorView& view, std::string_view what);

/// Whether a T can stand for one element: the C++ type of the same kind and width, or an unsigned
/// integer of the same width, which reads the raw bits of any type.
template <class T>
bool is_elem_type(DType dtype) noexcept {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
  const bool has_width = bits_per_elem(dtype) == 8 * static_cast<int>(sizeof(T));
  if (std::is_unsigned_v<T>) return has_width;
  const bool is_float = dtype == DType::kF32 || dtype == DType::kF64;
  const bool is_signed =
      dtype == DType::kI8 || dtype == DType::kI16 || dtype == DType::kI32 || dtype == DType::kI64;
  return has_width && (std::is_floating_point_v<T> ? is_float : is_signed);
}

/// A row-major tensor without gaps that owns its memory.
class HostTensor {
 public:
  /// A tensor without elements: F32, shape [0].
  HostTensor() : shape_{0} {}

  /// All bytes zero.
  /// Errors   InvalidArgument as checked_num_bytes; OutOfMemory
  HostTensor(DType dtype, std::vector<std::int64_t> shape);

  /// A copy of contiguous host memory, aligned for any element type whatever the view was.
  /// Errors   as above; Unsupported if the view is not contiguous
  explicit HostTensor(const ConstTensorView& view);

  DType dtype() const noexcept { return dtype_; }
  const std::vector<std::int64_t>& shape() const noexcept { return shape_; }
  std::int64_t num_elems() const noexcept { return num_elems_; }
  std::span<std::byte> bytes() noexcept { return bytes_; }
  std::span<const std::byte> bytes() const noexcept { return bytes_; }

  TensorView view() { return contiguous_view(bytes_.data(), dtype_, shape_); }
  ConstTensorView view() const {
    return contiguous_view(static_cast<const void*>(bytes_.data()), dtype_, shape_);
  }

  /// The elements in row-major order.
  /// Errors   InvalidArgument unless is_elem_type<T>(dtype())
  template <class T>
  std::span<T> elems() {
    require_elem_type(is_elem_type<T>(dtype_), sizeof(T));
    return {reinterpret_cast<T*>(bytes_.data()), static_cast<std::size_t>(num_elems_)};
  }
  template <class T>
  std::span<const T> elems() const {
    require_elem_type(is_elem_type<T>(dtype_), sizeof(T));
    return {reinterpret_cast<const T*>(bytes_.data()), static_cast<std::size_t>(num_elems_)};
  }

 private:
  void require_elem_type(bool is_match, std::size_t size_bytes) const;

  DType dtype_ = DType::kF32;
  std::vector<std::int64_t> shape_;
  std::int64_t num_elems_ = 0;
  std::vector<std::byte> bytes_;
};

}  // namespace tilewright
