// The arithmetic of a decode problem: what makes sense, and how much work it is.
#pragma once

#include "tilewright/attention_decode.h"

#include <cstdint>

namespace tilewright::ops {

/// Checks, and fills in strides, scale and the room of a sequence (max_len, max_pages).
/// Errors   InvalidArgument naming field, value, rule and remedy
AttentionDecodeProblem complete_decode_problem(const AttentionDecodeProblem& problem);

/// Keys that a sequence has room for.
std::int64_t decode_capacity(const AttentionDecodeProblem& p) noexcept;
constexpr std::int64_t decode_kv_elem_bytes(const AttentionDecodeProblem& p) noexcept {
  return p.kv_dtype == DType::kF8_E4M3 ? 1 : 2;
}
/// (query, head) pairs of a KV head.
constexpr std::int64_t decode_rows(const AttentionDecodeProblem& p) noexcept {
  return p.heads / p.kv_heads * p.q_len;
}
/// Keys that a sequence of that length has to have read.
std::int64_t decode_visible_keys(const AttentionDecodeProblem& p, std::int64_t length) noexcept;

/// Of one sequence with so many keys (those appended included): keys and values once, q and out;
/// 4 * head_dim for each query, head and key seen.
double decode_bytes(const AttentionDecodeProblem& p, std::int64_t length) noexcept;
double decode_flops(const AttentionDecodeProblem& p, std::int64_t length) noexcept;

}  // namespace tilewright::ops
