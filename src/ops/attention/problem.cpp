#include "ops/attention/problem.h"

#include "kernels/attention/k7/k7_fp8.h"
#include "ops/operator/arguments.h"
#include "ops/operator/float_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxElems = std::int64_t{1} << 60;  // of a tensor: bytes stay below 2^62
constexpr std::int64_t kVectorBytes = 16;                  // strides are multiples of it

constexpr ArgumentChecks kChecks("attention");

void check_numbers(const AttentionProblem& p) {
  kChecks.check(
      p.dtype == DType::kBF16 || p.dtype == DType::kF16 || p.dtype == DType::kF8_E4M3,
      "dtype = {}; expected BF16, F16 or F8_E4M3, the same for q, k and v. Convert first.",
      to_string(p.dtype));
  const DType out = attention_out_dtype(p);
  if (attention_is_e4m3(p)) {
    kChecks.check(out == DType::kBF16 || out == DType::kF16, "out_dtype = {}; expected BF16 or F16",
                  to_string(out));
    const ScaleSharing scales = p.fp8.scales;
    kChecks.check(scales == ScaleSharing::kTensor || scales == ScaleSharing::kHead ||
                      scales == ScaleSharing::kBlock,
                  "fp8.scales = {}; expected tensor, head or block", to_string(scales));
  } else {
    kChecks.check(out == p.dtype, "out_dtype = {} for operands of {}; expected the same, or none",
                  to_string(out), to_string(p.dtype));
  }
  kChecks.range("batch", p.batch, 0, kMaxInt32);
  kChecks.range("heads", p.heads, 1, kMaxInt32);
  kChecks.range("kv_heads", p.kv_heads, 1, kMaxInt32);
  kChecks.check(
      p.heads % p.kv_heads == 0,
      "heads = {} is no multiple of kv_heads = {}; every key head serves equally many query heads",
      p.heads, p.kv_heads);
  kChecks.range("q_len", p.q_len, 0, kMaxAttentionLength);
  kChecks.range("kv_len", p.kv_len, 0, kMaxAttentionLength);
  kChecks.check(
      p.head_dim > 0 && p.head_dim <= 4096 && p.head_dim % 8 == 0,
      "head_dim = {}; expected a multiple of 8 from 8 to 4096: rows are read in 16 bytes. Pad "
      "with zeros.",
      p.head_dim);
  const std::string fault = score_factors_fault(p.scale, "head_dim^-0.5", p.softcap);
  kChecks.check(fault.empty(), "{}", fault);
  kChecks.check(p.window_left >= -1, "window_left = {}; expected the number of keys, or -1 for all",
                p.window_left);
  kChecks.check(p.window_right >= -1,
                "window_right = {}; expected the number of keys, or -1 for all", p.window_right);
}

void check_packing(const AttentionProblem& p) {
  if (!p.is_packed) {
    kChecks.check(
        p.total_q == 0 || p.total_q == p.batch * p.q_len,
        "total_q = {} without packed sequences; expected 0 or batch * q_len = {}. Set is_packed?",
        p.total_q, p.batch * p.q_len);
    kChecks.check(p.total_kv == 0 || p.total_kv == p.batch * p.kv_len,
                  "total_kv = {} without packed sequences; expected 0 or batch * kv_len = {}. Set "
                  "is_packed?",
                  p.total_kv, p.batch * p.kv_len);
    return;
  }
  kChecks.range("total_q", p.total_q, 0, kMaxInt32);
  kChecks.range("total_kv", p.total_kv, 0, kMaxInt32);
  kChecks.check(p.q_len <= p.total_q, "q_len = {} of the longest sequence exceeds total_q = {}",
                p.q_len, p.total_q);
  kChecks.check(p.kv_len <= p.total_kv, "kv_len = {} of the longest sequence exceeds total_kv = {}",
                p.kv_len, p.total_kv);
  // No product can overflow: both factors are below 2^31.
  kChecks.check(
      p.total_q <= p.batch * p.q_len,
      "total_q = {} rows do not fit batch = {} sequences of at most q_len = {}; q_len is the "
      "length of the longest",
      p.total_q, p.batch, p.q_len);
  kChecks.check(
      p.total_kv <= p.batch * p.kv_len,
      "total_kv = {} rows do not fit batch = {} sequences of at most kv_len = {}; kv_len is the "
      "length of the longest",
      p.total_kv, p.batch, p.kv_len);
}

struct Tensor {
  const char* name;
  std::int64_t batch, rows, heads;
  std::int64_t row_elems;  // contiguous
  std::int64_t elem_bytes;
  bool is_transposed = false;  // heads lie outside of rows
};

std::int64_t checked_product(const char* name, std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  kChecks.check(!__builtin_mul_overflow(a, b, &product) && product <= kMaxElems,
                "{} would have more than 2^60 elements; lower batch, heads or lengths", name);
  return product;
}

std::int64_t last_elem(const char* name, std::int64_t extent, std::int64_t stride) {
  return extent > 1 ? checked_product(name, extent - 1, stride) : 0;
}

/// Strides of dimensions of one element, which are never used, become those of a contiguous tensor.
Strides complete_strides(const Tensor& tensor, const Strides& given, bool is_written) {
  const std::int64_t rows = std::max<std::int64_t>(tensor.rows, 1), elems = tensor.row_elems;
  const std::int64_t row =
      tensor.is_transposed ? elems : checked_product(tensor.name, tensor.heads, elems);
  const std::int64_t head =
      tensor.is_transposed ? checked_product(tensor.name, rows, elems) : elems;
  const std::int64_t batch = tensor.is_transposed ? checked_product(tensor.name, tensor.heads, head)
                                                  : checked_product(tensor.name, rows, row);
  checked_product(tensor.name, std::max<std::int64_t>(tensor.batch, 1), batch);
  const std::int64_t multiple = kVectorBytes / tensor.elem_bytes;
  Strides out = given;
  if (given.batch == 0 && given.row == 0 && given.head == 0) return {batch, row, head};
  if (tensor.batch <= 1) out.batch = batch;
  if (tensor.rows <= 1) out.row = row;
  if (tensor.heads <= 1) out.head = head;
  const auto check_stride = [&](const char* dimension, std::int64_t stride) {
    kChecks.check(
        stride >= 0 && stride % multiple == 0,
        "{} stride of {} = {} elements; expected a multiple of {}, so that rows stay aligned to 16 "
        "bytes",
        dimension, tensor.name, stride, multiple);
    kChecks.check(
        !is_written || stride >= elems,
        "{} stride of {} = {} elements; expected at least head_dim = {}: results would overlap",
        dimension, tensor.name, stride, elems);
  };
  check_stride("batch", out.batch);
  check_stride("row", out.row);
  check_stride("head", out.head);
  checked_product(tensor.name, 1,
                  last_elem(tensor.name, tensor.batch, out.batch) +
                      last_elem(tensor.name, tensor.rows, out.row) +
                      last_elem(tensor.name, tensor.heads, out.head));
  return out;
}

void complete_all_strides(AttentionProblem& p) {
  const std::int64_t batch = p.is_packed ? 1 : p.batch;
  const std::int64_t q_rows = p.is_packed ? p.total_q : p.q_len;
  const std::int64_t kv_rows = p.is_packed ? p.total_kv : p.kv_len;
  const auto complete = [&](const Tensor& tensor, Strides& strides, bool is_written = false) {
    strides = complete_strides(tensor, strides, is_written);
    if (p.is_packed) strides.batch = 0;
  };
  const std::int64_t bytes = attention_is_e4m3(p) ? 1 : 2, dim = p.head_dim;
  complete({"q", batch, q_rows, p.heads, dim, bytes}, p.q_strides);
  complete({"k", batch, kv_rows, p.kv_heads, dim, bytes}, p.k_strides);
  if (attention_has_columns(p)) {
    const std::int64_t columns = std::max<std::int64_t>(attention_value_columns(p), 16);
    complete({"v", batch, dim, p.kv_heads, columns, bytes, true}, p.v_strides);
    kChecks.check(
        p.v_strides.row >= attention_value_columns(p),
        "row stride of v = {}; expected at least its {} columns: that of dimensions, since "
        "v_layout is kColumns",
        p.v_strides.row, attention_value_columns(p));
  } else {
    complete({"v", batch, kv_rows, p.kv_heads, dim, bytes}, p.v_strides);
  }
  complete({"out", batch, q_rows, p.heads, dim, 2}, p.out_strides, true);
}

double sum_of_range(double first, double last) {
  return last < first ? 0 : (first + last) * (last - first + 1) / 2;
}

}  // namespace

bool attention_is_e4m3(const AttentionProblem& p) noexcept {
  return p.dtype == DType::kF8_E4M3;
}

bool attention_has_columns(const AttentionProblem& p) noexcept {
  return attention_is_e4m3(p) && p.fp8.v_layout == Fp8ValueLayout::kColumns;
}

DType attention_out_dtype(const AttentionProblem& p) noexcept {
  return p.out_dtype.value_or(attention_is_e4m3(p) ? DType::kBF16 : p.dtype);
}

std::int64_t attention_value_columns(const AttentionProblem& p) noexcept {
  return p.is_packed ? kernels::value_columns(p.total_kv, p.batch) : (p.kv_len + 15) / 16 * 16;
}

std::int64_t attention_q_rows(const AttentionProblem& p) noexcept {
  return p.is_packed ? p.total_q : p.batch * p.q_len;
}

std::int64_t attention_kv_rows(const AttentionProblem& p) noexcept {
  return p.is_packed ? p.total_kv : p.batch * p.kv_len;
}

double count_visible_scores(const AttentionProblem& p, std::int64_t q_len,
                            std::int64_t kv_len) noexcept {
  if (q_len <= 0 || kv_len <= 0) return 0;
  const std::int64_t all = q_len + kv_len;  // beyond every position
  const std::int64_t left = p.window_left < 0 ? all : std::min(p.window_left, all);
  std::int64_t right = p.window_right < 0 ? all : std::min(p.window_right, all);
  if (p.causal) right = 0;
  // Positions that see anything; each sees keys [max(x - left, 0), min(x + right, kv_len - 1)].
  const std::int64_t first = std::max(kv_len - q_len, -right);
  const std::int64_t last = std::min(kv_len - 1, kv_len - 1 + left);
  if (last < first) return 0;
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  const std::int64_t full_end = kv_len - 1 - right;  // up to here the end is x + right
  const std::int64_t until = std::min(last, full_end), from = std::max(first, full_end + 1);
  const double ends = sum_of_range(number(first + right + 1), number(until + right + 1)) +
                      number(std::max<std::int64_t>(last - from + 1, 0)) * number(kv_len);
  const std::int64_t cut = std::max(first, left);  // from here on the beginning is x - left
  const double begins = sum_of_range(number(cut - left), number(last - left));
  return ends - begins;
}

const char* attention_type_name(DType dtype) noexcept {
  return dtype == DType::kF16 ? "f16" : dtype == DType::kF8_E4M3 ? "e4m3" : "bf16";
}

namespace {

double flops_of(const AttentionProblem& p) {
  const double per_score = 4.0 * static_cast<double>(p.head_dim) * static_cast<double>(p.heads);
  const double batch = static_cast<double>(p.batch);
  if (!p.is_packed) return per_score * batch * count_visible_scores(p, p.q_len, p.kv_len);
  if (p.batch == 0) return 0;
  return per_score * batch *
         count_visible_scores(p, (p.total_q + p.batch - 1) / p.batch,
                              (p.total_kv + p.batch - 1) / p.batch);
}

double bytes_of(const AttentionProblem& p) {
  const double q_elems = static_cast<double>(attention_q_rows(p)) * static_cast<double>(p.heads);
  const double kv_elems =
      static_cast<double>(attention_kv_rows(p)) * static_cast<double>(p.kv_heads);
  const double dim = static_cast<double>(p.head_dim);
  const double in_bytes = attention_is_e4m3(p) ? 1 : 2;
  return dim * ((in_bytes + 2) * q_elems + 2 * in_bytes * kv_elems) + (p.has_lse ? 4 * q_elems : 0);
}

}  // namespace

}  // namespace tilewright::ops

namespace tilewright {

AttentionProblem complete(const AttentionProblem& problem) {
  AttentionProblem p = problem;
  ops::check_numbers(p);
  ops::check_packing(p);
  p.out_dtype = ops::attention_out_dtype(p);
  if (!p.scale) p.scale = 1 / std::sqrt(static_cast<double>(p.head_dim));
  if (!p.is_packed) {
    p.total_q = p.batch * p.q_len;
    p.total_kv = p.batch * p.kv_len;
  }
  ops::complete_all_strides(p);
  return p;
}

Work count_work(const AttentionProblem& problem) noexcept {
  return {ops::flops_of(problem), ops::bytes_of(problem)};
}

}  // namespace tilewright
