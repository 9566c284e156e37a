// Contract of the first rung of attention over values that are keys as well: scalar arithmetic.
#pragma once

#include "kernels/sparse_attention/latent/latent.h"

namespace tilewright::kernels {

/// Entries latent_naive_TYPE_vDIMS, TYPE bf16 or f16, DIMS 256 or 512, with LatentParams, whose
/// schedule and maps are not read; a CTA a row: grid (q_len * heads, batch).
inline constexpr int kLatentNaiveWarps = 8;
inline constexpr int kLatentNaiveThreads = kLatentNaiveWarps * 32;

}  // namespace tilewright::kernels
