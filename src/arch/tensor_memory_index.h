// Addresses in Tensor Memory in closed form: the formulas that kernels index with.
// tests/arch/register_index_test.cpp proves each of them against the layouts of arch/fragments.
#pragma once

#include <cstdint>

namespace tilewright::arch {

/// A cell of 32 bits. Accumulators of 128 rows have row = lane, and so do loads and stores of
/// 32 lanes: register i of a thread is column i.
constexpr std::uint32_t tensor_cell(std::uint32_t lane, std::uint32_t column) {
  return lane << 16 | column;
}
/// Columns that so many numbers of an A operand take, which lie packed along the reduction index.
constexpr int packed_columns(int numbers, int bits = 16) {
  return numbers * bits / 32;
}

}  // namespace tilewright::arch
