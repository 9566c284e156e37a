// The arithmetic of a latent attention problem, beside what the public header has of it.
#pragma once

#include "tilewright/latent_attention.h"

#include <cstdint>

namespace tilewright::ops {

/// Keys that a sequence has room for.
std::int64_t latent_capacity(const LatentAttentionProblem& p) noexcept;
/// Rows of a sequence and KV head.
std::int64_t latent_rows(const LatentAttentionProblem& p) noexcept;
/// Of full caches: 2 * (64 + 2 * value_dim) (without qv one value_dim) for each query, head and
/// key seen; keys and values once, q, qv and out.
Work latent_work(const LatentAttentionProblem& p) noexcept;

}  // namespace tilewright::ops
