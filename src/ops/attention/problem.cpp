#include "ops/attention/problem.h"

#include "kernels/attention/k7/k7_fp8.h"
#include "kernels/attention/k7/value_columns.h"
#include "ops/operator/problem_checks.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewright::ops {

namespace {

constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxElems = std::int64_t{1} << 60;  // of a tensor: bytes stay below 2^62
constexpr std::int64_t kVectorBytes = 16;                  // strides are multiples of it

// Whether the numbers of rows are in their ranges.
bool check_numbers(ProblemChecks& checks, const AttentionProblem& p) {
  checks
      .expect(p.dtype == DType::kBF16 || p.dtype == DType::kF16 || p.dtype == DType::kF8_E4M3,
              "dtype", p.dtype, "BF16, F16 or F8_E4M3, the same for q, k and v")
      .remedy("Convert first.");
  const DType out = attention_out_dtype(p);
  if (attention_is_e4m3(p)) {
    checks.expect(out == DType::kBF16 || out == DType::kF16, "out_dtype", out, "BF16 or F16");
  } else {
    checks.expect(out == p.dtype, "out_dtype", out, "dtype = {}, or none", to_string(p.dtype));
  }
  const DType of_keys = attention_kv_dtype(p);
  checks.expect(of_keys == p.dtype || of_keys == DType::kF8_E4M3, "kv_dtype", of_keys,
                "dtype = {}, F8_E4M3, or none", to_string(p.dtype));
  const ScaleSharing scales = p.fp8.scales;
  if (of_keys == DType::kF8_E4M3)
    checks.expect(scales == ScaleSharing::kTensor || scales == ScaleSharing::kHead ||
                      scales == ScaleSharing::kBlock,
                  "fp8.scales", scales, "tensor, head or block");
  if (all_held({checks.range("heads", p.heads, 1, kMaxInt32),
                checks.range("kv_heads", p.kv_heads, 1, kMaxInt32)}))
    checks.expect(p.heads % p.kv_heads == 0, "heads", p.heads,
                  "a multiple of kv_heads = {}; every key head serves equally many query heads",
                  p.kv_heads);
  checks
      .expect(p.head_dim > 0 && p.head_dim <= 4096 && p.head_dim % 8 == 0, "head_dim", p.head_dim,
              "a multiple of 8 from 8 to 4096: rows are read in 16 bytes")
      .remedy("Pad with zeros.");
  const std::int64_t value_dim = attention_value_dim(p);
  checks
      .expect(p.value_dim == 0 || (value_dim > 0 && value_dim <= 4096 && value_dim % 8 == 0),
              "value_dim", value_dim,
              "a multiple of 8 from 8 to 4096, or 0 for head_dim: rows are read in 16 bytes")
      .remedy("Pad with zeros.");
  if (of_keys == DType::kF8_E4M3)
    checks
        .expect(p.head_dim % 16 == 0, "head_dim", p.head_dim,
                "a multiple of 16 for operands of e4m3: rows are read in 16 bytes")
        .remedy("Pad with zeros.");
  if (attention_widens(p) && p.value_dim != 0)
    checks
        .expect(value_dim % 16 == 0, "value_dim", value_dim,
                "a multiple of 16 for values of e4m3: rows are read in 16 bytes")
        .remedy("Pad with zeros.");
  checks.scores(p.scale, "head_dim^-0.5", p.softcap);
  checks.expect(p.window_left >= -1, "window_left", p.window_left,
                "the number of keys, or -1 for all");
  checks.expect(p.window_right >= -1, "window_right", p.window_right,
                "the number of keys, or -1 for all");
  checks.range("chunk", p.chunk, 0, kMaxAttentionLength).remedy("0 stands for no chunks.");
  return all_held({checks.range("batch", p.batch, 0, kMaxInt32),
                   checks.range("q_len", p.q_len, 0, kMaxAttentionLength),
                   checks.range("kv_len", p.kv_len, 0, kMaxAttentionLength)});
}

// Of a problem whose numbers of rows are in their ranges: no product can overflow.
void check_packing(ProblemChecks& checks, const AttentionProblem& p) {
  const auto check = [&](const char* total_name, std::int64_t total, const char* len_name,
                         std::int64_t len) {
    if (!p.is_packed) {
      checks
          .expect(total == 0 || total == p.batch * len, total_name, total,
                  "0 or batch * {} = {} without packed sequences", len_name, p.batch * len)
          .remedy("Set is_packed?");
      return;
    }
    if (!checks.range(total_name, total, 0, kMaxInt32)) return;
    checks
        .expect(len <= total, len_name, len, "at most {} = {}; it is the length of the longest",
                total_name, total)
        .remedy("That many is enough.");
    checks
        .expect(total <= p.batch * len, total_name, total,
                "at most batch = {} times {} = {}, the length of the longest", p.batch, len_name,
                len)
        .remedy("Raise that length, or leave out rows of no sequence.");
  };
  check("total_q", p.total_q, "q_len", p.q_len);
  if (p.page_size == 0) return check("total_kv", p.total_kv, "kv_len", p.kv_len);
  checks
      .expect(p.total_kv == 0, "total_kv", p.total_kv,
              "0 with pages: num_pages says how many rows there are")
      .remedy("Leave it out.");
}

void check_pages(ProblemChecks& checks, AttentionProblem& p) {
  if (p.page_size == 0) {
    for (const auto& [field, value] :
         {std::pair{"num_pages", p.num_pages}, std::pair{"max_pages", p.max_pages},
          std::pair{"table_stride", p.table_stride}})
      checks.expect(value == 0, field, value, "0 without pages").remedy("Set page_size?");
    return;
  }
  checks.range("page_size", p.page_size, 1, kMaxAttentionLength).remedy("0 stands for no pages.");
  checks.range("num_pages", p.num_pages, 0, kMaxInt32).remedy("Larger pages need fewer.");
  checks
      .expect(p.has_kv_lengths, "has_kv_lengths", p.has_kv_lengths,
              "true with pages: kv_lengths says how many keys each sequence has")
      .remedy("Set it, and pass kv_lengths.");
  if (!checks.is_fine()) return;
  const std::int64_t needed = (p.kv_len + p.page_size - 1) / p.page_size;
  checks.expect(p.max_pages >= needed && p.max_pages <= kMaxInt32, "max_pages", p.max_pages,
                "at least {}, the pages of {} that kv_len = {} keys need", needed, p.page_size,
                p.kv_len);
  if (p.table_stride == 0) p.table_stride = p.max_pages;
  checks.range("table_stride", p.table_stride, 0, kMaxElems).remedy("0 stands for max_pages.");
}

struct Tensor {
  const char* name;
  std::int64_t batch, rows, heads;
  std::int64_t row_elems;  // contiguous
  std::int64_t elem_bytes;
  bool is_transposed = false;  // heads lie outside of rows
  const char* elems_name = "head_dim";
};

// Empty if it is too large.
std::optional<std::int64_t> elems_of(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product) || product > kMaxElems) return std::nullopt;
  return product;
}

// Strides of a tensor without gaps; none if it has more than 2^60 elements.
std::optional<Strides> contiguous_strides_of(const Tensor& t) {
  const std::int64_t rows = std::max<std::int64_t>(t.rows, 1), elems = t.row_elems;
  const std::int64_t inner = t.is_transposed ? rows : t.heads;
  const std::int64_t outer = t.is_transposed ? t.heads : rows;
  const auto middle = elems_of(inner, elems);
  const auto batch = middle ? elems_of(outer, *middle) : std::nullopt;
  if (!batch || !elems_of(std::max<std::int64_t>(t.batch, 1), *batch)) return std::nullopt;
  return t.is_transposed ? Strides{*batch, elems, *middle} : Strides{*batch, *middle, elems};
}

// Whether the last element is at most 2^60 behind the first.
bool is_reachable(const Tensor& t, const Strides& s) {
  std::int64_t last = 0;
  for (const auto& [extent, stride] :
       {std::pair{t.batch, s.batch}, std::pair{t.rows, s.row}, std::pair{t.heads, s.head}}) {
    if (extent <= 1) continue;
    const auto part = elems_of(extent - 1, stride);
    if (!part || (last += *part) > kMaxElems) return false;
  }
  return true;
}

/// Strides of dimensions of one element, which are never used, become those of a contiguous tensor.
Strides complete_strides(ProblemChecks& checks, const Tensor& tensor, const Strides& given,
                         bool is_written) {
  const std::optional<Strides> contiguous = contiguous_strides_of(tensor);
  if (!checks
           .expect(contiguous.has_value(), "batch", tensor.batch,
                   "so few that {} has at most 2^60 elements", tensor.name)
           .remedy("Lower batch, heads or lengths."))
    return given;
  if (given.batch == 0 && given.row == 0 && given.head == 0) return *contiguous;
  Strides out = given;
  if (tensor.batch <= 1) out.batch = contiguous->batch;
  if (tensor.rows <= 1) out.row = contiguous->row;
  if (tensor.heads <= 1) out.head = contiguous->head;
  const std::int64_t multiple = kVectorBytes / tensor.elem_bytes;
  const std::string name = fmt::format("{}_strides", tensor.name);
  ProblemChecks of_strides(checks, name.c_str());
  bool is_right = true;
  for (const auto& [dimension, stride] :
       {std::pair{"batch", out.batch}, std::pair{"row", out.row}, std::pair{"head", out.head}}) {
    is_right =
        of_strides.expect(stride >= 0 && stride % multiple == 0, dimension, stride,
                          "a multiple of {}, so that rows stay aligned to 16 bytes", multiple) &&
        of_strides.expect(!is_written || stride >= tensor.row_elems, dimension, stride,
                          "at least {} = {}: results would overlap", tensor.elems_name,
                          tensor.row_elems) &&
        is_right;
  }
  if (is_right)
    checks.expect(is_reachable(tensor, out), name.c_str(),
                  fmt::format("{}, {}, {}", out.batch, out.row, out.head),
                  "at most 2^60 elements from the first to the last");
  return out;
}

void complete_all_strides(ProblemChecks& checks, AttentionProblem& p,
                          const AttentionTensorNames& names) {
  const std::int64_t q_batch = p.is_packed ? 1 : p.batch;
  const std::int64_t q_rows = p.is_packed ? p.total_q : p.q_len;
  const auto [batch, kv_rows] = attention_kv_shape(p);
  const bool is_paged = p.page_size > 0;
  const auto complete = [&](const Tensor& tensor, Strides& strides, bool is_written = false) {
    strides = complete_strides(checks, tensor, strides, is_written);
    if (p.is_packed && !(is_paged && tensor.batch == p.num_pages)) strides.batch = 0;
  };
  const std::int64_t bytes = attention_is_e4m3(p) ? 1 : 2,
                     kv_bytes = attention_widens(p) ? 1 : bytes;
  const std::int64_t dim = p.head_dim, value_dim = p.value_dim;
  complete({names.q, q_batch, q_rows, p.heads, dim, bytes}, p.q_strides);
  complete({names.k, batch, kv_rows, p.kv_heads, dim, kv_bytes}, p.k_strides);
  if (attention_has_columns(p)) {
    const std::int64_t columns = std::max<std::int64_t>(attention_value_columns(p), 16);
    complete({names.v, batch, value_dim, p.kv_heads, columns, bytes, true}, p.v_strides);
    checks.expect(p.v_strides.row >= attention_value_columns(p),
                  fmt::format("{}_strides.row", names.v).c_str(), p.v_strides.row,
                  "at least its {} columns: that of dimensions, since v_layout is kColumns",
                  attention_value_columns(p));
  } else {
    complete({names.v, batch, kv_rows, p.kv_heads, value_dim, kv_bytes}, p.v_strides);
  }
  const char* const width = value_dim == dim ? "head_dim" : "value_dim";
  complete({"out", q_batch, q_rows, p.heads, value_dim, 2, false, width}, p.out_strides, true);
}

double sum_of_range(double first, double last) {
  return last < first ? 0 : (first + last) * (last - first + 1) / 2;
}

}  // namespace

AttentionProblem complete_attention_problem(ProblemChecks& checks, const AttentionProblem& problem,
                                            const AttentionTensorNames& names) {
  AttentionProblem p = problem;
  if (check_numbers(checks, p)) {
    check_packing(checks, p);
    check_pages(checks, p);
  }
  if (!checks.is_fine()) return p;
  p.out_dtype = attention_out_dtype(p);
  p.value_dim = attention_value_dim(p);
  if (!p.scale) p.scale = 1 / std::sqrt(static_cast<double>(p.head_dim));
  if (!p.is_packed) {
    p.total_q = p.batch * p.q_len;
    if (p.page_size == 0) p.total_kv = p.batch * p.kv_len;
  }
  complete_all_strides(checks, p, names);
  return p;
}

bool attention_is_e4m3(const AttentionProblem& p) noexcept {
  return p.dtype == DType::kF8_E4M3;
}

DType attention_kv_dtype(const AttentionProblem& p) noexcept {
  return p.kv_dtype.value_or(p.dtype);
}

bool attention_widens(const AttentionProblem& p) noexcept {
  return attention_kv_dtype(p) != p.dtype;
}

std::int64_t attention_value_dim(const AttentionProblem& p) noexcept {
  return p.value_dim == 0 ? p.head_dim : p.value_dim;
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

KvShape attention_kv_shape(const AttentionProblem& p) noexcept {
  if (p.page_size > 0) return {p.num_pages, p.page_size};
  return p.is_packed ? KvShape{1, p.total_kv} : KvShape{p.batch, p.kv_len};
}

std::int64_t attention_kv_rows(const AttentionProblem& p) noexcept {
  const KvShape shape = attention_kv_shape(p);
  return shape.batch * shape.rows;
}

namespace {

// Of a sequence whose keys are one chunk.
double count_scores_of_chunk(const AttentionProblem& p, std::int64_t q_len,
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

}  // namespace

double count_visible_scores(const AttentionProblem& p, std::int64_t q_len,
                            std::int64_t kv_len) noexcept {
  if (p.chunk == 0 || q_len <= 0 || kv_len <= 0) return count_scores_of_chunk(p, q_len, kv_len);
  // Queries before the first key see none. Those of a chunk end with it, as a sequence's do.
  const std::int64_t begin = std::max<std::int64_t>(kv_len - q_len, 0);
  const std::int64_t first = begin / p.chunk, last = (kv_len - 1) / p.chunk;
  const std::int64_t of_last = kv_len - last * p.chunk;
  if (first == last) return count_scores_of_chunk(p, kv_len - begin, of_last);
  return count_scores_of_chunk(p, (first + 1) * p.chunk - begin, p.chunk) +
         static_cast<double>(last - first - 1) * count_scores_of_chunk(p, p.chunk, p.chunk) +
         count_scores_of_chunk(p, of_last, of_last);
}

const char* attention_type_name(DType dtype) noexcept {
  return dtype == DType::kF16 ? "f16" : dtype == DType::kF8_E4M3 ? "e4m3" : "bf16";
}

namespace {

double flops_of(const AttentionProblem& p) {
  const double columns = static_cast<double>(p.head_dim + attention_value_dim(p));
  const double per_score = 2.0 * columns * static_cast<double>(p.heads);
  const double batch = static_cast<double>(p.batch);
  if (!p.is_packed) return per_score * batch * count_visible_scores(p, p.q_len, p.kv_len);
  if (p.batch == 0) return 0;
  const std::int64_t q_len = (p.total_q + p.batch - 1) / p.batch;
  const std::int64_t kv_len = p.page_size > 0 ? p.kv_len : (p.total_kv + p.batch - 1) / p.batch;
  return per_score * batch * count_visible_scores(p, q_len, kv_len);
}

double bytes_of(const AttentionProblem& p) {
  const double q_elems = static_cast<double>(attention_q_rows(p)) * static_cast<double>(p.heads);
  const double kv_rows = p.page_size > 0
                             ? static_cast<double>(p.batch) * static_cast<double>(p.kv_len)
                             : static_cast<double>(attention_kv_rows(p));
  const double kv_elems = kv_rows * static_cast<double>(p.kv_heads);
  const double dim = static_cast<double>(p.head_dim);
  const double value_dim = static_cast<double>(attention_value_dim(p));
  const double in_bytes = attention_is_e4m3(p) ? 1 : 2;
  const double kv_bytes = attention_widens(p) ? 1 : in_bytes;
  return (in_bytes * dim + 2 * value_dim) * q_elems + kv_bytes * (dim + value_dim) * kv_elems +
         (p.has_lse ? 4 * q_elems : 0);
}

}  // namespace

}  // namespace tilewright::ops

namespace tilewright {

AttentionProblem complete(const AttentionProblem& problem) {
  ops::ProblemChecks checks("attention");
  const AttentionProblem p = ops::complete_attention_problem(checks, problem);
  checks.finish();
  return p;
}

Work count_work(const AttentionProblem& problem) noexcept {
  return {ops::flops_of(problem), ops::bytes_of(problem)};
}

}  // namespace tilewright
