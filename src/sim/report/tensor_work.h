// How much a tensor-core instruction multiplies, read from its text.
#pragma once

#include "sim/model/device_model.h"
#include "sim/parse/ast.h"

#include <cstdint>
#include <string_view>

namespace tilewright::sim {

struct TensorWork {
  /// Of operand A: "bf16", "e4m3", "s8"; of tcgen05.mma the kind; empty if it multiplies nothing
  std::string_view type;
  /// A multiply-add counts as two; of a sparse A without the zeros. 0 of tcgen05.mma, whose shape
  /// is known only when it runs
  double flop_per_warp = 0;
  std::uint64_t shared_bytes = 0;  ///< read per warp by a wgmma with both operands in shared memory
};

/// Of mma, wmma.mma, wgmma.mma_async and tcgen05.mma.
TensorWork tensor_work(const Instruction& instruction);

/// Operations per cycle for operands of this type or kind; 0 if unknown.
std::uint32_t tensor_rate(const TensorRates& rates, std::string_view type);

}  // namespace tilewright::sim
