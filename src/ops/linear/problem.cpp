#include "ops/linear/problem.h"

#include "kernels/moe/scatter.h"
#include "ops/linear/source.h"
#include "ops/operator/problem_checks.h"

namespace tilewright::ops {

namespace {

constexpr std::int64_t kMaxRows = std::int64_t{1} << 24, kMaxStride = std::int64_t{1} << 32;
constexpr std::int64_t kMaxGroups = 1024;
constexpr std::int64_t kMaxQuantisedColumns = kernels::kMoeScatterMaxColumns;

void check_stride(ProblemChecks& checks, const char* field, std::int64_t stride, std::int64_t least,
                  DType dtype) {
  const std::int64_t step = 16 / linear_elem_bytes(dtype);
  checks.expect(stride >= least && stride <= kMaxStride && stride % step == 0, field, stride,
                "a multiple of {} (16 bytes of {}) from {} to 2^32", step, to_string(dtype), least);
}

void check_block_scaled(ProblemChecks& checks, const LinearWeightInfo& weight) {
  checks
      .expect(weight.format != NumberFormat::kBf16, "format", weight.format,
              "fp8, mxfp4 or nvfp4 for block_scaled activations")
      .remedy("Quantise the weight, or prepare it for bf16 activations.");
  checks
      .expect(weight.k % 32 == 0 && weight.k <= kMaxQuantisedColumns, "k", weight.k,
              "a multiple of 32 up to {} for block_scaled activations", kMaxQuantisedColumns)
      .remedy("Pad the weight and x with zeros, or prepare it for bf16 activations.");
}

Noted check_groups(ProblemChecks& checks, const LinearWeightInfo& weight) {
  const std::int64_t rows = weight.format == NumberFormat::kFp8 ? kFp8Block : 16;
  const bool is_scaled = weight.activations == LinearActivations::kBlockScaled;
  return checks
      .expect(weight.groups == 1 || (weight.groups > 1 && weight.groups <= kMaxGroups &&
                                     weight.n % (weight.groups * rows) == 0 && !is_scaled),
              "groups", weight.groups,
              "1, or up to {} with a multiple of {} of the {} rows in each, and activations that "
              "are not block_scaled",
              kMaxGroups, rows, weight.n)
      .remedy("Prepare a weight for each group.");
}

// Whether sizes and types are such that strides can be looked at.
bool check_numbers(ProblemChecks& checks, const LinearWeightInfo& weight, const LinearProblem& p) {
  checks.expect(p.m >= 0 && p.m <= kMaxRows, "m", p.m, "0 to 2^24 rows of x");
  checks.expect(p.activation_scales == ScaleSharing::kAuto ||
                    p.activation_scales == ScaleSharing::kRow ||
                    p.activation_scales == ScaleSharing::kBlock,
                "activation_scales", p.activation_scales, "auto, row or block");
  const bool is_fp8 = weight.activations == LinearActivations::kFp8;
  if (weight.activations == LinearActivations::kBlockScaled) check_block_scaled(checks, weight);
  checks
      .expect(weight.groups == 1 || p.x_dtype == DType::kBF16, "x_dtype", p.x_dtype,
              "BF16 for a weight of {} groups", weight.groups)
      .remedy("Prepare a weight for each group.");
  return all_held(
      {check_groups(checks, weight),
       checks.expect(weight.n > 0 && weight.n % 16 == 0, "n", weight.n, "a multiple of 16"),
       checks.expect(weight.k > 0 && weight.k % 16 == 0, "k", weight.k, "a multiple of 16"),
       checks
           .expect(p.x_dtype == DType::kBF16 || (p.x_dtype == DType::kF8_E4M3 && is_fp8), "x_dtype",
                   p.x_dtype, "BF16{} with a weight prepared for {} activations",
                   is_fp8 ? " or F8_E4M3" : "", to_string(weight.activations))
           .remedy(is_fp8 ? "" : "Prepare the weight for fp8 if x is F8_E4M3."),
       checks.expect(p.out_dtype == DType::kBF16 || p.out_dtype == DType::kF32, "out_dtype",
                     p.out_dtype, "BF16 or F32")});
}

}  // namespace

void check_linear_weight(const LinearWeightInfo& weight) {
  ProblemChecks checks("linear");
  check_groups(checks, weight);
  if (weight.activations == LinearActivations::kBlockScaled) check_block_scaled(checks, weight);
  checks.finish();
}

std::int64_t linear_elem_bytes(DType dtype) noexcept {
  return bits_per_elem(dtype) / 8;
}

std::int64_t fp8_columns(std::int64_t k) noexcept {
  return (k + 63) / 64 * 64;
}

std::int64_t fp8_scale_rows(std::int64_t m) noexcept {
  return (m + 3) / 4 * 4;
}

LinearProblem complete_linear_problem(const LinearWeightInfo& weight,
                                      const LinearProblem& problem) {
  ProblemChecks checks("linear");
  LinearProblem p = problem;
  const bool has_strides = check_numbers(checks, weight, p);
  if (p.activation_scales == ScaleSharing::kAuto)
    p.activation_scales =
        weight.format == NumberFormat::kFp8 ? ScaleSharing::kBlock : ScaleSharing::kRow;
  const std::int64_t columns =
      p.x_dtype == DType::kF8_E4M3 ? fp8_columns(weight.k) : weight.k * weight.groups;
  if (p.x_stride == 0) p.x_stride = columns;
  if (p.out_stride == 0) p.out_stride = weight.n;
  if (has_strides) {
    check_stride(checks, "x_stride", p.x_stride, columns, p.x_dtype);
    check_stride(checks, "out_stride", p.out_stride, weight.n, p.out_dtype);
  }
  checks.finish();
  return p;
}

double linear_weight_bytes(const LinearWeightInfo& weight) noexcept {
  const double elems = static_cast<double>(weight.n) * static_cast<double>(weight.k);
  switch (weight.format) {
    case NumberFormat::kBf16:
      return 2 * elems;
    case NumberFormat::kFp8:
      return elems * (1 + 4.0 / (128 * 128));
    case NumberFormat::kMxfp4:
      return elems * (0.5 + 1.0 / 32);
    case NumberFormat::kNvfp4:
      break;
  }
  return elems * (0.5 + 1.0 / 16);
}

double linear_flops(const LinearWeightInfo& weight, const LinearProblem& p) noexcept {
  return 2 * static_cast<double>(p.m) * static_cast<double>(weight.n) *
         static_cast<double>(weight.k);
}

double linear_bytes(const LinearWeightInfo& weight, const LinearProblem& p) noexcept {
  const double m = static_cast<double>(p.m);
  return linear_weight_bytes(weight) +
         m * static_cast<double>(weight.groups * weight.k * linear_elem_bytes(p.x_dtype)) +
         m * static_cast<double>(weight.n * linear_elem_bytes(p.out_dtype));
}

}  // namespace tilewright::ops
