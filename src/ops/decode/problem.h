// The arithmetic of a decode problem, beside what the public header has of it.
#pragma once

#include "tilewright/attention_decode.h"

#include <cstdint>

namespace tilewright::ops {

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
/// The most of any length.
std::int64_t decode_most_keys(const AttentionDecodeProblem& p) noexcept;

}  // namespace tilewright::ops
