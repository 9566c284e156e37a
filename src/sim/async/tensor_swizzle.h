// The permutation of 16-byte chunks that keeps columns of a tile out of each other's banks.
#pragma once

#include "sim/async/tensor_map.h"

#include <cstdint>

namespace tilewright::sim {

/// Where the byte that would lie at this absolute shared address is put instead. All modes permute
/// within aligned 128 bytes.
///
///     32B        a ^ (line % 2) << 4, where line = a / 128
///     64B        a ^ (line % 4) << 4
///     128B       a ^ (line % 8) << 4;  atoms of 32 B: a ^ (line % 4) << 5;  64 B: (line % 2) << 6
///     flip       32 B atoms, and on odd lines the 8-byte halves of 16 bytes change places
///     96B        a ^ (line % 2) << 4
///
/// Source   PTX ISA, "Swizzling modes"
constexpr std::uint32_t swizzled(TensorSwizzle mode, std::uint32_t address) {
  struct Rule {
    std::uint8_t line_mask, shift, flip;
  };
  constexpr Rule kRules[] = {{0, 4, 0}, {1, 4, 0}, {3, 4, 0}, {7, 4, 0},
                             {3, 5, 0}, {3, 5, 8}, {1, 6, 0}, {1, 4, 0}};
  const Rule rule = kRules[static_cast<std::uint8_t>(mode)];
  const std::uint32_t line = address >> 7;
  const std::uint32_t flip = (line & 1) != 0 ? rule.flip : 0;
  return address ^ ((line & rule.line_mask) << rule.shift) ^ flip;
}

/// Aligned runs of this many bytes stay together.
constexpr std::uint32_t swizzle_atom_bytes(TensorSwizzle mode) {
  switch (mode) {
    case TensorSwizzle::kNone:
      return 1024;
    case TensorSwizzle::k128BAtom32B:
      return 32;
    case TensorSwizzle::k128BAtom32BFlip8B:
      return 8;
    case TensorSwizzle::k128BAtom64B:
      return 64;
    default:
      return 16;
  }
}

}  // namespace tilewright::sim
