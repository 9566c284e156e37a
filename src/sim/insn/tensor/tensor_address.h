// The operand [taddr] of the instructions for Tensor Memory, and what they share.
#pragma once

#include "sim/compile/lowering.h"
#include "sim/insn/tensor/tensor_pipe.h"

#include <cstdint>

namespace tilewright::sim {

/// Of [register + immediate].
struct TensorAddressForm {
  Row base = kNoRow;
  std::uint32_t offset = 0;
};

TensorAddressForm tensor_address_form(Lowering& l, int operand_idx);

inline std::uint32_t tensor_address_bits(Warp& warp, const TensorAddressForm& form, int lane) {
  return warp.row<std::uint32_t>(form.base)[lane] + form.offset;
}

/// .cta_group::1 or ::2
std::uint32_t take_cta_group(Lowering& l);

void take_sync_aligned(Lowering& l);

/// Columns column to column + num_columns - 1 must be there.
/// Errors   FaultError
void check_tensor_columns(std::uint32_t column, std::uint32_t num_columns, std::uint32_t lanes);

}  // namespace tilewright::sim
