// mul followed by add or sub becomes fma, as ptxas does it.
#pragma once

#include "sim/compile/flatten.h"

namespace tilewright::sim {

/// Replaces additions of products by fma where ptxas (CUDA 13.0, -O3) does, and removes the
///   products: - f32, f64, f16, bf16 and their pairs; neither instruction names a rounding mode
///     (.rn is one), both or none have .ftz, the product has no .sat and no guard. f32x2: the
///     rounding modes are the same, named or not.
///   - Every use of the product is such an addition, once in each, in the same basic block: then
///     all of them become fma. Else none does.
///   - Of two products that are added, the first operand's is taken, but one with a single use
///     before one with several.
/// ptxas works on values, this on registers: a product stays one if a register that it reads, or
/// its own, gets a new value before its last use, and `mov` and `neg` in between are not seen
/// through.
/// Source   ptxas 13.0 and nvdisasm on some 80 small programs; the manual says only that it may
void contract_products(FlatKernel& kernel);

}  // namespace tilewright::sim
