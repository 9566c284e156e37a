#include "ops/decode/problem.h"

#include "kernels/attention/decode/decode.h"
#include "kernels/attention/decode/decode_append.h"
#include "kernels/attention/decode/limits.h"
#include "ops/operator/cache_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

using Problem = AttentionDecodeProblem;

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 20;
constexpr std::int64_t kMaxStride = std::int64_t{1} << 50;

void check_numbers(ProblemChecks& checks, const Problem& p) {
  checks
      .expect(p.dtype == DType::kBF16 || p.dtype == DType::kF16, "dtype", p.dtype,
              "BF16 or F16, the same for q, out and new tokens")
      .remedy("Convert first.");
  checks
      .expect(p.kv_dtype == p.dtype || p.kv_dtype == DType::kF8_E4M3, "kv_dtype", p.kv_dtype,
              "dtype = {} or F8_E4M3", to_string(p.dtype))
      .remedy("Convert the cache, or q.");
  checks.range("batch", p.batch, 0, kMaxBatch).remedy("Run parts of the batch.");
  checks.range("q_len", p.q_len, 0, kernels::kDecodeMaxQueries)
      .remedy("More queries are work for attention.h.");
  if (all_held({checks.range("heads", p.heads, 1, kMaxCacheHeads).remedy("Run parts of the heads."),
                checks.range("kv_heads", p.kv_heads, 1, kMaxCacheHeads)
                    .remedy("Run parts of the heads.")}))
    check_head_groups(checks, p.heads, p.kv_heads);
  checks
      .expect(p.head_dim >= 8 && p.head_dim <= 4096 && p.head_dim % 8 == 0, "head_dim", p.head_dim,
              "a multiple of 8 from 8 to 4096")
      .remedy("Pad with zeros.");
  checks.scores(p.scale, "head_dim^-0.5", p.softcap);
  checks.expect(p.window_left >= -1 && p.window_left <= kMaxCacheKeys, "window_left", p.window_left,
                "the number of keys, or -1 for all");
  checks.range("chunk", p.chunk, 0, kMaxCacheKeys).remedy("0 stands for no chunks.");
  checks.range("splits", p.splits, 0, 1024).remedy("0 leaves it to the device.");
  const bool has_descale = p.descale == ScaleSharing::kTensor || p.descale == ScaleSharing::kHead;
  checks.expect(has_descale || p.descale == ScaleSharing::kNone, "descale", p.descale,
                "none, tensor or head");
  checks
      .expect(!has_descale || p.kv_dtype == DType::kF8_E4M3, "descale", p.descale,
              "none for a cache of {}; scales belong to F8_E4M3", to_string(p.kv_dtype))
      .remedy("Set kNone.");
}

void complete_room(ProblemChecks& checks, Problem& p) {
  if (p.page_size == 0) return check_no_pages(checks, p);
  const bool has_page_size = bool(
      checks.range("page_size", p.page_size, 1, kMaxCacheKeys).remedy("0 stands for no pages."));
  complete_pages(checks, p, has_page_size, kMaxStride);
}

void complete_all_strides(ProblemChecks& checks, Problem& p) {
  constexpr const char* kBounds = "from 0 on: rows are 16-byte aligned";
  const StrideRule of_rows = {8, kMaxStride, kBounds};
  const Strides q = without_gaps(checks, p.q_len, p.heads, p.head_dim);
  const Strides new_k = without_gaps(checks, p.q_len, p.kv_heads, p.head_dim);
  complete_strides(checks, "q_strides", of_rows, q, p.q_strides);
  complete_strides(checks, "out_strides", of_rows, q, p.out_strides);
  complete_strides(checks, "new_k_strides", of_rows, new_k, p.new_k_strides);
  complete_strides(checks, "new_v_strides", of_rows, new_k, p.new_v_strides);
  const StrideRule of_cache = {16 / decode_kv_elem_bytes(p), kMaxStride, kBounds};
  const Strides& s = p.cache_strides;
  checks
      .expect(p.head_dim % of_cache.granule == 0 || s.batch != 0 || s.row != 0 || s.head != 0,
              "head_dim", p.head_dim,
              "a multiple of {} in a cache of {} without gaps: rows are 16-byte aligned",
              of_cache.granule, to_string(p.kv_dtype))
      .remedy("Set cache_strides to multiples of that, with a gap behind each row.");
  const std::int64_t slots = p.page_size > 0 ? p.page_size : p.max_len;
  complete_strides(checks, "cache_strides", of_cache,
                   without_gaps(checks, slots, p.kv_heads, p.head_dim), p.cache_strides);
}

// A launch has fewer than 2^31 CTAs. In floating point: factors may be out of their own ranges.
void check_append_rows(ProblemChecks& checks, const Problem& p) {
  const auto size = [](std::int64_t x) { return static_cast<double>(x); };
  const double turned = p.append.rotary == RotaryPairs::kNone ? 0 : size(p.heads);
  const double rows = size(p.batch) * size(p.q_len) * (turned + 2 * size(p.kv_heads));
  constexpr double kMost = 1.0 * kernels::kDecodeAppendWarps * kMaxInt32;
  checks
      .expect(rows <= kMost, "batch", p.batch,
              "so few sequences that new tokens have at most {} rows of a head, those of q that "
              "turn included, not {}",
              kMost, rows)
      .remedy("Run parts of the batch.");
}

void check_append(ProblemChecks& all, const Problem& p) {
  ProblemChecks checks(all, "append");
  const DecodeAppend& a = p.append;
  if (a.is_wanted) check_append_rows(all, p);
  if (a.rotary == RotaryPairs::kNone) {
    for (const auto& [field, value] :
         {std::pair{"rotary_dim", a.rotary_dim}, std::pair{"max_position", a.max_position}})
      checks.expect(value == 0, field, value, "0 without rotary pairs")
          .remedy("Set append.rotary?");
    return;
  }
  checks
      .expect(a.is_wanted, "is_wanted", a.is_wanted,
              "true with append.rotary: keys in the cache are rotated already, and q alone is not")
      .remedy("Append, or rotate q before.");
  checks
      .expect(a.rotary_dim > 0 && a.rotary_dim % 2 == 0 && a.rotary_dim <= p.head_dim, "rotary_dim",
              a.rotary_dim, "an even number up to head_dim = {}", p.head_dim)
      .remedy("Elements turn in pairs.");
  checks.range("max_position", a.max_position, 1, kMaxInt32)
      .remedy("It counts rows of the tables of angles.");
}

}  // namespace

std::int64_t decode_capacity(const Problem& p) noexcept {
  return p.page_size > 0 ? p.max_pages * p.page_size : p.max_len;
}

namespace {

// The first key of the chunk of a position.
std::int64_t chunk_begin(const Problem& p, std::int64_t position) {
  return p.chunk == 0 || position < 0 ? 0 : position / p.chunk * p.chunk;
}

}  // namespace

std::int64_t decode_visible_keys(const Problem& p, std::int64_t length) noexcept {
  const std::int64_t by_window =
      p.window_left < 0 ? length : std::min(length, p.window_left + p.q_len);
  return std::min(by_window, length - chunk_begin(p, length - p.q_len));
}

std::int64_t decode_most_keys(const Problem& p) noexcept {
  const std::int64_t room = decode_capacity(p);
  const std::int64_t of_window = p.window_left < 0 ? room : p.window_left + p.q_len;
  return std::min({room, of_window, p.chunk == 0 ? room : p.chunk + p.q_len - 1});
}

namespace {

double bytes_of(const Problem& p, std::int64_t length) {
  const auto row = static_cast<double>(p.head_dim);
  const double keys = static_cast<double>(decode_visible_keys(p, length) * p.kv_heads) * row * 2 *
                      static_cast<double>(decode_kv_elem_bytes(p));
  return keys + static_cast<double>(p.q_len * p.heads) * row * 4;
}

double flops_of(const Problem& p, std::int64_t length) {
  double seen = 0;
  for (std::int64_t i = 0; i < p.q_len; ++i) {
    const std::int64_t position = length - p.q_len + i;
    std::int64_t end = p.causal ? std::min(position + 1, length) : length;
    if (p.chunk > 0) end = position < 0 ? 0 : std::min(end, chunk_begin(p, position) + p.chunk);
    const std::int64_t begin =
        std::max(p.window_left < 0 ? 0 : std::max<std::int64_t>(position - p.window_left, 0),
                 chunk_begin(p, position));
    seen += static_cast<double>(std::max<std::int64_t>(end - begin, 0));
  }
  return seen * static_cast<double>(p.heads * p.head_dim) * 4;
}

}  // namespace

}  // namespace tilewright::ops

namespace tilewright {

AttentionDecodeProblem complete(const AttentionDecodeProblem& problem) {
  ops::ProblemChecks checks("attention decode");
  AttentionDecodeProblem p = problem;
  ops::check_numbers(checks, p);
  ops::complete_room(checks, p);
  ops::check_append(checks, p);
  ops::complete_all_strides(checks, p);
  checks.finish();
  if (!p.scale) p.scale = 1 / std::sqrt(static_cast<double>(p.head_dim));
  return p;
}

Work count_work(const AttentionDecodeProblem& problem, std::int64_t keys) noexcept {
  return {ops::flops_of(problem, keys), ops::bytes_of(problem, keys)};
}

}  // namespace tilewright
