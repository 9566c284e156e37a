#include "cli/sim/tensor_map.h"

#include "sim/async/tensor_map.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace tilewright::cli {

namespace {

std::optional<sim::TensorElement> element_of(DType dtype) {
  using sim::TensorElement;
  switch (dtype) {
    case DType::kU8:
    case DType::kI8:
    case DType::kBOOL:
    case DType::kF8_E4M3:
    case DType::kF8_E5M2:
    case DType::kF8_E8M0:
      return TensorElement::kU8;
    case DType::kU16:
    case DType::kI16:
      return TensorElement::kU16;
    case DType::kU32:
      return TensorElement::kU32;
    case DType::kI32:
      return TensorElement::kS32;
    case DType::kU64:
      return TensorElement::kU64;
    case DType::kI64:
      return TensorElement::kS64;
    case DType::kF16:
      return TensorElement::kF16;
    case DType::kBF16:
      return TensorElement::kBf16;
    case DType::kF32:
      return TensorElement::kF32;
    case DType::kF64:
      return TensorElement::kF64;
    default:
      return std::nullopt;
  }
}

sim::TensorSwizzle parse_swizzle(const JsonNode& node) {
  using sim::TensorSwizzle;
  const std::string& text = node.as_string();
  if (text == "none") return TensorSwizzle::kNone;
  for (const auto swizzle : {TensorSwizzle::k32B, TensorSwizzle::k64B, TensorSwizzle::k128B}) {
    if (text == sim::name_of(swizzle)) return swizzle;
  }
  node.fail("expected none, 32B, 64B or 128B");
}

/// Numbers into the first entries of an array; how many there are, or `count` if they must be so
/// many.
template <class Array>
std::size_t read_array(const JsonNode& node, Array& out, std::size_t least, std::size_t most) {
  const auto elems = node.elems();
  if (elems.size() < least || elems.size() > most) {
    node.fail("expected {} numbers, found {}",
              least == most ? std::to_string(least) : fmt::format("{} to {}", least, most),
              elems.size());
  }
  using Number = typename Array::value_type;
  for (std::size_t i = 0; i < elems.size(); ++i) {
    const std::int64_t value = elems[i].as_int(0);
    if (!std::in_range<Number>(value)) {
      elems[i].fail("{} is too large; the largest is {}", value,
                    std::numeric_limits<Number>::max());
    }
    out[i] = static_cast<Number>(value);
  }
  return elems.size();
}

/// Innermost first, as far as the buffer's shape tells.
void take_shape(sim::TensorMapFields& fields, const HostTensor& buffer, std::size_t rank) {
  const auto& shape = buffer.shape();
  std::uint64_t stride = static_cast<std::uint64_t>(bits_per_elem(buffer.dtype())) / 8;
  for (std::size_t i = 0; i < rank; ++i) {
    fields.dims[i] = static_cast<std::uint64_t>(shape[shape.size() - 1 - i]);
    stride *= fields.dims[i];
    if (i + 1 < rank) fields.strides_bytes[i] = stride;
  }
}

}  // namespace

std::vector<std::byte> parse_tensor_map(const JsonNode& node, std::uint64_t address,
                                        const HostTensor& buffer) {
  sim::TensorMapFields fields;
  const auto element = element_of(buffer.dtype());
  if (!element) node.fail("a tensor map has no elements of type {}", to_string(buffer.dtype()));
  fields.element = *element;
  fields.address = address;
  const std::size_t rank = read_array(node.at("box"), fields.box, 1, sim::kMaxTensorRank);
  fields.rank = static_cast<std::uint32_t>(rank);
  if (const auto dims = node.find("dims")) {
    read_array(*dims, fields.dims, rank, rank);
    if (rank > 1) read_array(node.at("strides_bytes"), fields.strides_bytes, rank - 1, rank - 1);
  } else {
    if (buffer.shape().size() != rank) {
      node.at("box").fail("has {} dimensions, but the buffer has {}", rank, buffer.shape().size());
    }
    take_shape(fields, buffer, rank);
    if (const auto strides = node.find("strides_bytes")) {
      read_array(*strides, fields.strides_bytes, rank - 1, rank - 1);
    }
  }
  fields.element_strides.fill(1);
  if (const auto strides = node.find("element_strides")) {
    read_array(*strides, fields.element_strides, rank, rank);
  }
  if (const auto swizzle = node.find("swizzle")) fields.swizzle = parse_swizzle(*swizzle);
  if (const auto fill = node.find("fill")) {
    if (fill->as_string() == "nan") fields.fill = sim::TensorFill::kNan;
  }
  const std::string problem = sim::validate(fields);
  if (!problem.empty()) node.fail("{}", problem);
  std::vector<std::byte> object(sim::kTensorMapBytes);
  sim::encode(fields, std::span<std::byte, sim::kTensorMapBytes>(object));
  return object;
}

}  // namespace tilewright::cli
