// Element types and strided views: how tensors in memory are described to Tilewright, and by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tilewright {

/// Type of one element, named `k` + the name it has in safetensors files; little-endian in memory.
/// Types of fewer than 8 bits are packed without gaps, the first element in the lowest bits.
/// Note: safetensors lays tensors out in the reverse of this order, so that wide types come first
/// and stay aligned. New types go where their width belongs.
/// Source   safetensors format description; OCP Microscaling Formats 1.0 for F4, F6 and F8_E8M0
enum class DType : std::uint8_t {
  kBOOL,     ///< one byte, 0 or 1
  kF4,       ///< e2m1, two per byte
  kF6_E2M3,  ///< four in three bytes
  kF6_E3M2,  ///< four in three bytes
  kU8,
  kI8,
  kF8_E5M2,      ///< OCP 8-bit float with infinities
  kF8_E4M3,      ///< OCP 8-bit float without infinities, largest value 448
  kF8_E8M0,      ///< power-of-two block scale
  kF8_E4M3FNUZ,  ///< neither infinities nor negative zero
  kF8_E5M2FNUZ,  ///< neither infinities nor negative zero
  kI16,
  kU16,
  kF16,   ///< IEEE binary16
  kBF16,  ///< upper half of an IEEE binary32
  kI32,
  kU32,
  kF32,  ///< IEEE binary32
  kC64,  ///< two F32: real part, imaginary part
  kF64,  ///< IEEE binary64
  kI64,
  kU64,
};

/// Bits that one element occupies: 4, 6, 8, 16, 32 or 64.
int bits_per_elem(DType dtype) noexcept;

/// The safetensors name: "F32", "BF16", "F8_E4M3", ...
const char* to_string(DType dtype) noexcept;

/// The inverse of to_string; nothing if no type has that name. Case matters.
std::optional<DType> dtype_from_string(std::string_view name) noexcept;

/// A tensor whose memory the caller owns; `Void` is `void` or `const void`. The view owns its
/// shape.
/// Layout   element (i0, i1, ...) starts at bit (i0 * strides[0] + i1 * strides[1] + ...) *
///          bits_per_elem(dtype) after data; strides may be zero (broadcast) or negative
/// Units    shape and strides count elements
/// Memory   host or device; the function that takes the view says which. Nothing is implied about
///          alignment
template <class Void>
struct BasicTensorView {
  Void* data = nullptr;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;    ///< empty: a scalar
  std::vector<std::int64_t> strides;  ///< as many as shape

  /// A view of writable memory is one of readable memory.
  operator BasicTensorView<const void>() const requires(!std::is_const_v<Void>) {
    return {data, dtype, shape, strides};
  }
};

using TensorView = BasicTensorView<void>;
using ConstTensorView = BasicTensorView<const void>;

/// Elements from one sequence of the batch, row, head to the next; all 0: contiguous. The elements
/// of a head lie side by side.
struct Strides {
  std::int64_t batch = 0, row = 0, head = 0;
};

/// Strides of a row-major tensor without gaps: the last is 1, each other the product of all later
/// dimensions. A dimension of 0 counts as 1.
/// Errors   InvalidArgument if a dimension is negative or a stride would exceed 63 bits
std::vector<std::int64_t> contiguous_strides(std::span<const std::int64_t> shape);

/// A view of row-major memory without gaps. Errors as contiguous_strides.
TensorView contiguous_view(void* data, DType dtype, std::vector<std::int64_t> shape);
ConstTensorView contiguous_view(const void* data, DType dtype, std::vector<std::int64_t> shape);

/// Whether the elements lie row-major without gaps. The strides of dimensions of size 1 do not
/// matter; a tensor without elements is contiguous.
bool is_contiguous(const ConstTensorView& view) noexcept;

}  // namespace tilewright
