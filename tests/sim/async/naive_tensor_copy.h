// Tensor copies byte by byte, the slow and obvious way, to compare the fast one with.
#pragma once

#include "sim/async/tensor_copy.h"

#include <functional>
#include <random>
#include <vector>

namespace tilewright::sim {

/// Global memory for tests: [kBegin, kBegin + size).
struct TestMemory {
  static constexpr std::uint64_t kBegin = 0x7f0000001000;
  std::vector<std::byte> bytes;

  std::byte* global(std::uint64_t address, std::size_t size_bytes) {
    if (address < kBegin || address + size_bytes > kBegin + bytes.size()) return nullptr;
    return bytes.data() + (address - kBegin);
  }
};

/// Where the manual's drawings put a byte: chunk and line indices instead of bit tricks.
inline std::uint32_t naive_swizzled(TensorSwizzle mode, std::uint32_t address) {
  const std::uint32_t line = address / 128;
  const std::uint32_t column = address % 128;
  const auto exchanged = [&](std::uint32_t chunk_bytes, std::uint32_t lines) {
    const std::uint32_t chunk = (column / chunk_bytes) ^ (line % lines);
    return line * 128 + chunk * chunk_bytes + column % chunk_bytes;
  };
  switch (mode) {
    case TensorSwizzle::kNone:
      return address;
    case TensorSwizzle::k32B:
    case TensorSwizzle::k96B:
      return exchanged(16, 2);
    case TensorSwizzle::k64B:
      return exchanged(16, 4);
    case TensorSwizzle::k128B:
      return exchanged(16, 8);
    case TensorSwizzle::k128BAtom32B:
      return exchanged(32, 4);
    case TensorSwizzle::k128BAtom32BFlip8B: {
      const std::uint32_t flipped = exchanged(32, 4);
      return line % 2 == 0 ? flipped : flipped / 16 * 16 + (flipped + 8) % 16;
    }
    case TensorSwizzle::k128BAtom64B:
      return exchanged(64, 2);
  }
  return 0;
}

/// Calls visit(global address or 0, absolute shared address, byte in the row) for every byte. Rows
/// end at a multiple of `row_end_bytes`.
inline void naive_row(const TensorCopy& copy, const std::vector<std::int64_t>& start,
                      std::uint32_t row_idx,
                      const std::function<void(std::uint64_t, std::uint32_t, std::uint32_t)>& visit,
                      std::int64_t row_end_bytes = 1) {
  const TensorMapFields& map = *copy.map;
  const std::int64_t bits = element_bits(map.element);
  const bool is_im2col = map.mode == TensorMode::kIm2col;
  const std::uint32_t elems = is_im2col ? map.channels_per_pixel : map.box[0];
  std::uint64_t address = map.address;
  const std::int64_t exact_end = static_cast<std::int64_t>(map.dims[0]) * bits / 8;
  const std::int64_t end = (exact_end + row_end_bytes - 1) / row_end_bytes * row_end_bytes;
  bool is_inside = true;
  for (std::size_t i = 1; i < map.rank; ++i) {
    is_inside = is_inside && start[i] >= 0 && start[i] < static_cast<std::int64_t>(map.dims[i]);
    if (is_inside) address += static_cast<std::uint64_t>(start[i]) * map.strides_bytes[i - 1];
  }
  for (std::uint32_t byte = 0; byte < elems * bits / 8; ++byte) {
    const std::int64_t x = start[0] * bits / 8 + byte;  // in bytes from the row's beginning
    const bool is_here = is_inside && x >= 0 && x < end && start[0] * bits / 8 < exact_end;
    std::uint32_t in_row = byte;
    if (map.element == TensorElement::k16U4Align16B) in_row = byte / 8 * 16 + byte % 8;
    if (map.element == TensorElement::k16U6Align16B) in_row = byte / 12 * 16 + byte % 12;
    std::uint32_t pitch = elems * static_cast<std::uint32_t>(is_padded(map.element) ? 8 : bits) / 8;
    pitch = std::max(pitch, swizzle_span_bytes(map.swizzle));
    visit(is_here ? address + static_cast<std::uint64_t>(x) : 0,
          naive_swizzled(map.swizzle, copy.shared_address + row_idx * pitch + in_row), byte);
  }
}

/// The same for all rows of a tiled box.
inline void naive_box(const TensorCopy& copy,
                      const std::function<void(std::uint64_t, std::uint32_t, std::uint32_t)>& visit,
                      std::int64_t row_end_bytes = 1) {
  const TensorMapFields& map = *copy.map;
  std::uint32_t row = 0;
  std::vector<std::int64_t> at(5, 0);
  at[0] = copy.coordinates[0];
  const std::function<void(std::size_t)> walk = [&](std::size_t i) {
    if (i == 0) return naive_row(copy, at, row++, visit, row_end_bytes);
    for (std::uint32_t b = 0; b < map.box[i]; b += map.element_strides[i]) {
      at[i] = std::int64_t{copy.coordinates[i]} + b;
      walk(i - 1);
    }
  };
  walk(map.rank - 1);
}

/// A map that obeys the rules, with a small tensor inside TestMemory.
inline TensorMapFields random_map(std::mt19937& rng, TensorElement element) {
  const auto pick = [&rng](std::uint32_t low, std::uint32_t high) {
    return std::uniform_int_distribution<std::uint32_t>(low, high)(rng);
  };
  TensorMapFields map;
  map.element = element;
  map.address = TestMemory::kBegin + 32 * pick(0, 3);
  map.rank = pick(1, 5);
  const std::uint32_t bits = element_bits(element);
  const bool is_32 = is_padded(element);
  do {
    map.swizzle = static_cast<TensorSwizzle>(pick(0, 6));
    map.box[0] = is_32 ? 128 : std::min(256u, 128 / bits * pick(1, 8));
    map.dims[0] = is_32 ? 128 * pick(1, 3) : 2 * pick(1, 64);
    std::uint64_t stride = (map.dims[0] * bits / 8 + 31) / 32 * 32;
    for (std::size_t i = 1; i < 5; ++i) {
      map.dims[i] = pick(1, 5);
      map.box[i] = pick(1, 4);
      map.strides_bytes[i - 1] = stride + 32 * pick(0, 1);
      stride = map.strides_bytes[i - 1] * map.dims[i];
    }
    for (std::uint32_t& s : map.element_strides) s = pick(0, 3) == 0 ? pick(1, 4) : 1;
    map.fill = is_floating(element) && pick(0, 1) == 1 ? TensorFill::kNan : TensorFill::kZeros;
  } while (!validate(map).empty());
  return map;
}

inline TensorCopy random_copy(std::mt19937& rng, const TensorMapFields& map) {
  const auto pick = [&rng](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(rng);
  };
  TensorCopy copy;
  copy.map = &map;
  copy.shared_address = 0x400 + 128 * static_cast<std::uint32_t>(pick(0, 9));
  const int group =
      is_padded(map.element) ? 128 : 128 / static_cast<int>(element_bits(map.element));
  const int end = static_cast<int>(map.dims[0]) / group;
  copy.coordinates[0] = pick(0, 1) == 0 ? 0 : group * pick(-3, end + 1);
  for (std::size_t i = 1; i < map.rank; ++i) {
    copy.coordinates[i] = pick(0, 1) == 0 ? 0 : pick(-2, static_cast<int>(map.dims[i]));
  }
  return copy;
}

inline std::vector<std::byte> random_bytes(std::mt19937& rng, std::size_t size) {
  std::vector<std::byte> bytes(size);
  for (std::byte& b : bytes) b = static_cast<std::byte>(rng());
  return bytes;
}

}  // namespace tilewright::sim
