#include "sim/async/tensor_map.h"

#include <fmt/format.h>

namespace tilewright::sim {

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

std::uint64_t box_bytes(const TensorMapFields& fields) noexcept {
  std::uint64_t elems = 1;
  if (fields.mode == TensorMode::kTiled) {
    for (std::size_t i = 0; i < fields.rank; ++i) {
      elems *= fields.element_strides[i] == 0 ? 0 : fields.box[i] / fields.element_strides[i];
    }
  } else {
    elems = std::uint64_t{fields.channels_per_pixel} * fields.pixels_per_column;
  }
  return elems * (is_padded(fields.element) ? 8 : element_bits(fields.element)) / 8;
}

}  // namespace tilewright::sim
