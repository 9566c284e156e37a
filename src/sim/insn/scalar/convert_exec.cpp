#include "sim/insn/scalar/convert_exec.h"

#include "sim/insn/lanes.h"

namespace tilewright::sim {
namespace {

std::uint64_t read_lane(Warp& warp, Row row, int bits, int lane) {
  switch (bits) {
    case 8:
      return warp.row<std::uint8_t>(row)[lane];
    case 16:
      return warp.row<std::uint16_t>(row)[lane];
    case 32:
      return warp.row<std::uint32_t>(row)[lane];
    default:
      return warp.row<std::uint64_t>(row)[lane];
  }
}

void write_lane(Warp& warp, Row row, int bits, int lane, std::uint64_t value) {
  switch (bits) {
    case 8:
      warp.row<std::uint8_t>(row)[lane] = static_cast<std::uint8_t>(value);
      break;
    case 16:
      warp.row<std::uint16_t>(row)[lane] = static_cast<std::uint16_t>(value);
      break;
    case 32:
      warp.row<std::uint32_t>(row)[lane] = static_cast<std::uint32_t>(value);
      break;
    default:
      warp.row<std::uint64_t>(row)[lane] = value;
  }
}

std::uint64_t convert_packed(Warp& warp, const Insn& insn, const PackedConversion& conversion,
                             int lane) {
  const bool is_one_register = conversion.from_slot_bits != 0;
  const auto count = static_cast<std::size_t>(conversion.num_elements);
  Conversion element = conversion.element;
  std::uint32_t random = 0;
  if (conversion.has_random) random = warp.row<std::uint32_t>(insn.op[count + 1])[lane];
  std::uint64_t packed = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int slot = static_cast<int>(i);
    const std::uint64_t source =
        is_one_register ? read_lane(warp, insn.op[1], conversion.from_bits, lane) >>
                              (slot * conversion.from_slot_bits)
                        : read_lane(warp, insn.op[count - i], conversion.from_bits, lane);
    element.encode.random_bits = random >> (slot * conversion.random_slot_bits % 32);
    packed |= convert(element, source) << (slot * conversion.to_slot_bits);
  }
  return packed;
}

}  // namespace

Step run_conversion(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto& conversion = *static_cast<const Conversion*>(insn.extra);
  const int from_bits = storage_bits(conversion.from);
  const int to_bits = storage_bits(conversion.to);
  for (std::uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t source = read_lane(warp, insn.op[1], from_bits, lane);
    write_lane(warp, insn.op[0], to_bits, lane, convert(conversion, source));
  }
  return Step::kNext;
}

Step run_packed_conversion(Warp& warp, const Insn& insn, std::uint32_t active) {
  const auto& conversion = *static_cast<const PackedConversion*>(insn.extra);
  for (std::uint32_t left = active; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    write_lane(warp, insn.op[0], conversion.to_bits, lane,
               convert_packed(warp, insn, conversion, lane));
  }
  return Step::kNext;
}

namespace {

template <class To, class From>
To resize(From x) {
  return static_cast<To>(x);
}

template <class To>
ExecFn resize_exec(Type from) {
  switch (from) {
    case Type::kS8:
      return lanes<resize<To, std::int8_t>>;
    case Type::kS16:
      return lanes<resize<To, std::int16_t>>;
    case Type::kS32:
      return lanes<resize<To, std::int32_t>>;
    case Type::kS64:
      return lanes<resize<To, std::int64_t>>;
    default:
      break;
  }
  switch (bits_of(from)) {
    case 8:
      return lanes<resize<To, std::uint8_t>>;
    case 16:
      return lanes<resize<To, std::uint16_t>>;
    case 32:
      return lanes<resize<To, std::uint32_t>>;
    default:
      return lanes<resize<To, std::uint64_t>>;
  }
}

}  // namespace

ExecFn integer_conversion(Type to, Type from) {
  switch (bits_of(to)) {
    case 8:
      return resize_exec<std::uint8_t>(from);
    case 16:
      return resize_exec<std::uint16_t>(from);
    case 32:
      return resize_exec<std::uint32_t>(from);
    default:
      return resize_exec<std::uint64_t>(from);
  }
}

}  // namespace tilewright::sim
