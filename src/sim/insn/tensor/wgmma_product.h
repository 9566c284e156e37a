// The product of a wgmma: what its instruction was given, and D in the registers of the warps.
#pragma once

#include "sim/insn/tensor/wgmma_operand.h"
#include "sim/parse/types.h"
#include "sim/state/warp.h"
#include "sim/tensor/integer_multiply.h"

#include <cstdint>
#include <span>
#include <vector>

namespace tilewright::sim {

struct WgmmaForm {
  int n = 0, k = 0;
  Type d_type = Type::kF32, a_type = Type::kF16, b_type = Type::kF16;
  std::vector<Row> d, a;  ///< a is empty if it is in shared memory
  Row a_descriptor = kNoRow, b_descriptor = kNoRow;
  Row scale_d = kNoRow;
  std::uint32_t scale_d_flip = 0;
  bool is_a_negated = false, is_b_negated = false;
  OperandMajor a_major = OperandMajor::kK, b_major = OperandMajor::kK;
  bool is_saturating = false;
  BitOperation bits = BitOperation::kAnd;
};

/// What an instruction was given; registers are read when it takes effect.
struct WgmmaCall {
  const WgmmaForm* form = nullptr;
  std::uint64_t a_descriptor = 0, b_descriptor = 0;
  bool keeps_d = false;

  bool operator==(const WgmmaCall&) const = default;
};

inline constexpr int kWgmmaRows = 16;  ///< of a warp
inline constexpr int kMaxWgmmaN = 256;
inline constexpr int kBytesOfWgmmaK = 32;  ///< k16 of 16 bits, k32 of 8, k8 of tf32, k256 of 1

/// One warp's part of A, or all of B.
OperandTile wgmma_tile(const WgmmaForm& form, bool is_a);

/// Every warp's rows of D. The warps are of one warpgroup, and all have been given the same.
/// Errors   FaultError, with D as it was, if an operand is not all in shared memory
void perform_wgmma(std::span<Warp* const> warps, const WgmmaCall& call);

}  // namespace tilewright::sim
