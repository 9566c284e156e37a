// Where the elements of wmma's matrices lie in registers. The manual leaves it open: every register
// has the place here that mma.sync gives it, in as many blocks as the shape has; fp16 operands have
// more registers than elements and hold copies in them, as on the device.
#pragma once

#include "sim/insn/tensor/tensor_operands.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace tilewright::sim::wmma {

enum class Part : std::uint8_t { kA, kB, kC };  ///< kC: C or D

/// One operand: the matrix, its type and its registers.
struct Fragment {
  Part part = Part::kC;
  TileExtents extents{};
  Type type = Type::kF32;
  std::vector<Row> rows;
};

struct Place {
  int line;  ///< row of A, C and D; column of B
  int word;  ///< register-sized part of that line; of C and D the column
};

inline int bits_in(Type type) {
  return type == Type::kTf32 ? 32 : bits_of(type);
}
inline int register_bits(Type type) {
  return type == Type::kF64 ? 64 : 32;
}
inline int per_register(const Fragment& f) {
  return f.part == Part::kC && bits_in(f.type) == 32 ? 1 : register_bits(f.type) / bits_in(f.type);
}
/// Words along k of a line of A or B.
inline int words_per_line(const Fragment& f) {
  return f.extents.k * bits_in(f.type) / register_bits(f.type);
}

/// Registers that hold something else than a copy.
inline int num_distinct(const Fragment& f) {
  const int elems = f.part == Part::kC   ? f.extents.m * f.extents.n
                    : f.part == Part::kA ? f.extents.m * f.extents.k
                                         : f.extents.n * f.extents.k;
  return std::max(1, elems / kLanes / per_register(f));
}
inline int num_registers(const Fragment& f) {
  return f.part != Part::kC && f.type == Type::kF16 ? 8 : num_distinct(f);
}

inline Place operand_place(const Fragment& f, int lane, int reg) {
  const int g = lane / 4, q = lane % 4;
  if (f.part == Part::kB || f.extents.m == 8) {
    const int per_block = words_per_line(f) / 4;
    return {8 * (reg / per_block) + g, q + 4 * (reg % per_block)};
  }
  const int per_block = words_per_line(f) / 2;
  const int in_block = reg % per_block;
  return {16 * (reg / per_block) + g + 8 * (in_block % 2), q + 4 * (in_block / 2)};
}

/// Of element i of a lane of C or D.
inline Place sum_place(const Fragment& f, int lane, int i) {
  const int g = lane / 4, column = 2 * (lane % 4) + i % 2;
  if (f.extents.m == 8) return {g, 8 * (i / 2) + column};
  const int blocks = f.extents.n / 8, block = i / 4;
  return {16 * (block / blocks) + g + 8 * (i / 2 % 2), 8 * (block % blocks) + column};
}

}  // namespace tilewright::sim::wmma
