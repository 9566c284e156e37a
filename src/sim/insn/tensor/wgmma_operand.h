// Operands of wgmma in shared memory, with the words for descriptors that are wrong.
#pragma once

#include "sim/event/observer.h"
#include "sim/state/warp.h"
#include "sim/tensor/matrix_descriptor.h"
#include "sim/tensor/shared_descriptor.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::sim {

/// Copies rows first_row .. first_row + tile.rows - 1 of the operand into a dense array.
/// Errors   FaultError with the fields of the descriptor; `name` is A or B
void gather_wgmma_operand(Warp& warp, const char* name, std::uint64_t descriptor,
                          const OperandTile& tile, int first_row, std::span<std::byte> codes);

/// The same bytes as runs of shared memory, sorted.
void append_wgmma_ranges(const Warp& warp, std::uint64_t descriptor, const OperandTile& tile,
                         int first_row, std::vector<AsyncRange>& ranges);

/// The operand as observers are told of it, from first_row on.
SharedOperand wgmma_operand(const Warp& warp, char operand, std::uint64_t descriptor,
                            const OperandTile& tile, int first_row);

}  // namespace tilewright::sim
