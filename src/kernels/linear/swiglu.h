// SwiGLU: what the epilogues of gate-and-up products make of the two sums of a column.
#pragma once

#include "ptx/math.h"

namespace tilewright::tile {

/// Of 64 columns, gates and what they multiply in turns of 8: where the gate of result i stands.
/// What it multiplies is eight columns further.
__device__ constexpr int gate_column(int i) {
  return i / 8 * 16 + i % 8;
}

struct GateAndUp {
  float gate, up;
};

/// Both under the limit of DeepSeek-V4. NaN stays NaN, which fminf would turn into the limit.
__device__ inline GateAndUp limited(GateAndUp sums, float limit) {
  return {ptx::min_nan_f32(sums.gate, limit),
          ptx::max_nan_f32(ptx::min_nan_f32(sums.up, limit), -limit)};
}

/// silu(gate) * up.
__device__ inline float swiglu(GateAndUp sums, float limit) {
  const auto [gate, up] = limited(sums, limit);
  return __fdividef(gate, 1.0f + __expf(-gate)) * up;
}

}  // namespace tilewright::tile
