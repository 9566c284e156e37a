#include "ops/decode/problem.h"

#include "kernels/attention/decode/decode.h"
#include "ops/operator/arguments.h"
#include "ops/operator/float_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

using Problem = AttentionDecodeProblem;

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxKeys = std::int64_t{1} << 30;  // positions and windows add up in 32 bits
constexpr std::int64_t kMaxHeads = 65536;
constexpr std::int64_t kMaxBatch = std::int64_t{1} << 20;
constexpr std::int64_t kMaxStride = std::int64_t{1} << 50;

constexpr ArgumentChecks kChecks("attention decode");

void check_range(const char* field, std::int64_t value, std::int64_t least, std::int64_t most,
                 const char* remedy) {
  kChecks.check(value >= least && value <= most, "{} = {}; expected {} to {}. {}", field, value,
                least, most, remedy);
}

void check_numbers(const Problem& p) {
  kChecks.check(p.dtype == DType::kBF16 || p.dtype == DType::kF16,
                "dtype = {}; expected BF16 or F16, the same for q, out and new tokens. "
                "Convert first.",
                to_string(p.dtype));
  kChecks.check(p.kv_dtype == p.dtype || p.kv_dtype == DType::kF8_E4M3,
                "kv_dtype = {}; expected dtype = {} or F8_E4M3. Convert the cache, or q.",
                to_string(p.kv_dtype), to_string(p.dtype));
  check_range("batch", p.batch, 0, kMaxBatch, "Run parts of the batch.");
  check_range("q_len", p.q_len, 0, kernels::kDecodeMaxQueries,
              "More queries are work for attention.h.");
  check_range("heads", p.heads, 1, kMaxHeads, "Run parts of the heads.");
  check_range("kv_heads", p.kv_heads, 1, kMaxHeads, "Run parts of the heads.");
  kChecks.check(p.heads % p.kv_heads == 0,
                "heads = {} is no multiple of kv_heads = {}; every key head serves equally many "
                "query heads. Repeat or drop heads.",
                p.heads, p.kv_heads);
  kChecks.check(p.head_dim >= 8 && p.head_dim <= 4096 && p.head_dim % 8 == 0,
                "head_dim = {}; expected a multiple of 8 from 8 to 4096. Pad with zeros.",
                p.head_dim);
  const std::string fault = score_factors_fault(p.scale, "head_dim^-0.5", p.softcap);
  kChecks.check(fault.empty(), "{}", fault);
  kChecks.check(p.window_left >= -1 && p.window_left <= kMaxKeys,
                "window_left = {}; expected the number of keys, or -1 for all", p.window_left);
  check_range("splits", p.splits, 0, 1024, "0 leaves it to the device.");
  kChecks.check(p.descale == ScaleSharing::kNone || p.descale == ScaleSharing::kTensor ||
                    p.descale == ScaleSharing::kHead,
                "descale = {}; expected none, tensor or head", to_string(p.descale));
  kChecks.check(p.descale == ScaleSharing::kNone || p.kv_dtype == DType::kF8_E4M3,
                "descale factors for a cache of {}; they belong to F8_E4M3. Set kNone.",
                to_string(p.kv_dtype));
}

void complete_room(Problem& p) {
  if (p.page_size == 0) {
    kChecks.check(
        p.num_pages == 0 && p.max_pages == 0 && p.table_stride == 0,
        "num_pages = {}, max_pages = {}, table_stride = {} without pages; expected 0. Set "
        "page_size?",
        p.num_pages, p.max_pages, p.table_stride);
    check_range("max_len", p.max_len, 0, kMaxKeys, "Drop the oldest keys.");
    return;
  }
  check_range("page_size", p.page_size, 1, kMaxKeys, "0 stands for no pages.");
  check_range("num_pages", p.num_pages, 0, kMaxInt32, "Larger pages need fewer.");
  check_range("max_pages", p.max_pages, 0, kMaxKeys / p.page_size, "Drop the oldest keys.");
  kChecks.check(p.max_len == 0,
                "max_len = {} with pages of {}; expected 0: max_pages says it. Leave it out.",
                p.max_len, p.page_size);
  if (p.table_stride == 0) p.table_stride = p.max_pages;
  check_range("table_stride", p.table_stride, 0, kMaxStride, "0 stands for max_pages.");
}

// Contiguous [batch, rows, heads, head_dim] if all are 0.
void complete_strides(const char* name, const Problem& p, std::int64_t heads, Strides& s) {
  if (s.batch == 0 && s.row == 0 && s.head == 0)
    s = {p.q_len * heads * p.head_dim, heads * p.head_dim, p.head_dim};
  for (const std::int64_t stride : {s.batch, s.row, s.head})
    kChecks.check(stride >= 0 && stride <= kMaxStride && stride % 8 == 0,
                  "{}_strides = {}, {}, {}; expected multiples of 8 from 0 on: rows are 16-byte "
                  "aligned. Pad them.",
                  name, s.batch, s.row, s.head);
}

void complete_cache_strides(Problem& p) {
  Strides& s = p.cache_strides;
  const std::int64_t rows = p.page_size > 0 ? p.page_size : p.max_len;
  if (s.batch == 0 && s.row == 0 && s.head == 0)
    s = {rows * p.kv_heads * p.head_dim, p.kv_heads * p.head_dim, p.head_dim};
  const std::int64_t granule = 16 / decode_kv_elem_bytes(p);
  for (const std::int64_t stride : {s.batch, s.row, s.head})
    kChecks.check(
        stride >= 0 && stride <= kMaxStride && stride % granule == 0,
        "cache_strides = {}, {}, {}; expected multiples of {} from 0 on: rows are 16-byte "
        "aligned. Pad them.",
        s.batch, s.row, s.head, granule);
}

void check_append(const Problem& p) {
  const DecodeAppend& a = p.append;
  if (a.rotary == RotaryPairs::kNone) {
    kChecks.check(a.rotary_dim == 0 && a.max_position == 0,
                  "append.rotary_dim = {}, append.max_position = {} without rotary pairs; expected "
                  "0. Set append.rotary?",
                  a.rotary_dim, a.max_position);
    return;
  }
  kChecks.check(
      a.is_wanted,
      "append.rotary is set without append.is_wanted; expected both: keys in the cache are "
      "rotated already, and q alone is not. Append, or rotate q before.");
  kChecks.check(a.rotary_dim > 0 && a.rotary_dim % 2 == 0 && a.rotary_dim <= p.head_dim,
                "append.rotary_dim = {}; expected an even number up to head_dim = {}. Elements "
                "turn in pairs.",
                a.rotary_dim, p.head_dim);
  check_range("append.max_position", a.max_position, 1, kMaxInt32,
              "It counts rows of cos and sin.");
}

}  // namespace

std::int64_t decode_capacity(const Problem& p) noexcept {
  return p.page_size > 0 ? p.max_pages * p.page_size : p.max_len;
}

std::int64_t decode_visible_keys(const Problem& p, std::int64_t length) noexcept {
  if (p.window_left < 0) return length;
  return std::min(length, p.window_left + p.q_len);
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
    const std::int64_t end = p.causal ? std::min(position + 1, length) : length;
    const std::int64_t begin =
        p.window_left < 0 ? 0 : std::max<std::int64_t>(position - p.window_left, 0);
    seen += static_cast<double>(std::max<std::int64_t>(end - begin, 0));
  }
  return seen * static_cast<double>(p.heads * p.head_dim) * 4;
}

}  // namespace

}  // namespace tilewright::ops

namespace tilewright {

AttentionDecodeProblem complete(const AttentionDecodeProblem& problem) {
  AttentionDecodeProblem p = problem;
  ops::check_numbers(p);
  ops::complete_room(p);
  ops::check_append(p);
  if (!p.scale) p.scale = 1 / std::sqrt(static_cast<double>(p.head_dim));
  ops::complete_strides("q", p, p.heads, p.q_strides);
  ops::complete_strides("out", p, p.heads, p.out_strides);
  ops::complete_strides("new_k", p, p.kv_heads, p.new_k_strides);
  ops::complete_strides("new_v", p, p.kv_heads, p.new_v_strides);
  ops::complete_cache_strides(p);
  return p;
}

Work count_work(const AttentionDecodeProblem& problem, std::int64_t keys) noexcept {
  return {ops::flops_of(problem, keys), ops::bytes_of(problem, keys)};
}

}  // namespace tilewright
