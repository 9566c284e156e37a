// How much a tensor-core instruction multiplies, read from its text.
#pragma once

#include "sim/device_model.h"
#include "sim/parse/ast.h"

#include <cstdint>
#include <string_view>

namespace tilewright::sim {

struct TensorWork {
  std::string_view type;     ///< of operand A: "bf16", "e4m3", "s8"; empty if it multiplies nothing
  double flop_per_warp = 0;  ///< a multiply-add counts as two; of a sparse A without the zeros
  std::uint64_t shared_bytes = 0;  ///< read per warp by a wgmma with both operands in shared memory
};

/// Of mma, wmma.mma and wgmma.mma_async.
TensorWork tensor_work(const Instruction& instruction);

/// Operations per clock for operands of this type; 0 if unknown.
std::uint32_t tensor_rate(const TensorRates& rates, std::string_view type);

}  // namespace tilewright::sim
