#include "ops/attention/fp8.h"

#include "kernels/attention/k7/find_variant.h"
#include "kernels/attention/k7/k7_paged.h"
#include "ops/attention/padding.h"
#include "ops/attention/prepare.h"
#include "ops/attention/problem.h"
#include "ops/operator/workspace.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

static_assert(kernels::kQueryScaleBlock == kFp8QueryBlock &&
              kernels::kKeyScaleBlock == kFp8KeyBlock);

constexpr double kRoundoff = 0x1p-4;  // of e4m3: of every weight and every value
constexpr double kAllowed = kRoundoff / 4;
constexpr std::int64_t kStepKeys = 32;    // products that a tensor core adds at once
constexpr std::int64_t kFlushKeys = 256;  // two levels: 8 steps, 0.1 %

std::int64_t most_keys(const AttentionProblem& p) {
  const std::int64_t right = p.causal ? 0 : p.window_right;
  const std::int64_t most = p.chunk > 0 ? std::min(p.kv_len, p.chunk) : p.kv_len;
  if (p.window_left < 0 || right < 0) return most;
  return std::min(most, p.window_left + 1 + right);
}

std::string one_level_text(std::int64_t keys) {
  return fmt::format(
      "{} keys lose at most {:.2g} % in 13 fraction bits; a quarter of e4m3's "
      "roundoff is {:.2g} %",
      keys, 100 * fp8_accumulation_error(keys), 100 * kAllowed);
}

const kernels::K7Variant* find_variant(const AttentionKernel& kernel, const AttentionProblem& p,
                                       Fp8Accumulation accumulation, bool is_short) {
  const int head_dim = padded_head_dim(p.head_dim);
  const bool has_block_scales = p.fp8.scales == ScaleSharing::kBlock;
  const kernels::Fp8Sums sums = accumulation == Fp8Accumulation::kTwoLevel
                                    ? kernels::Fp8Sums::kTwoLevel
                                    : kernels::Fp8Sums::kOneLevel;
  if (!kernel.has_pages)
    return kernels::find_k7_variant(
        head_dim,
        attention_has_columns(p) ? kernels::Fp8Values::kColumns : kernels::Fp8Values::kRows,
        has_block_scales, sums, is_short);
  const auto found = std::ranges::find_if(kernels::kK7PagedVariants, [&](const auto& form) {
    return form.head_dim == head_dim && form.sums == sums;
  });
  const bool is_there = found != std::end(kernels::kK7PagedVariants) && !has_block_scales;
  return is_there ? &*found : nullptr;
}

kernels::Fp8Scales strides_of(const AttentionProblem& p, std::int64_t heads, std::int64_t len,
                              std::int64_t block) {
  kernels::Fp8Scales s = {};
  s.heads_per_scale = 1;
  if (p.fp8.scales == ScaleSharing::kTensor) return s;
  if (p.fp8.scales == ScaleSharing::kHead) {
    s.batch_stride = p.kv_heads;
    s.head_stride = 1;
    s.heads_per_scale = static_cast<std::int32_t>(heads / p.kv_heads);
    return s;
  }
  const std::int64_t blocks = std::max<std::int64_t>((len + block - 1) / block, 1);
  s.batch_stride = heads * blocks;
  s.head_stride = blocks;
  s.block_stride = 1;
  return s;
}

}  // namespace

double fp8_accumulation_error(std::int64_t keys) {
  return static_cast<double>((keys + kStepKeys - 1) / kStepKeys) * 0x1p-13;
}

Fp8Choice choose_fp8(const AttentionKernel& kernel, const AttentionProblem& p) {
  const std::int64_t keys = most_keys(p);
  Fp8Choice choice;
  if (kernel.capability == 100) {
    choice.accumulation = Fp8Accumulation::kOneLevel;
    choice.reason = "Blackwell's tensor core adds up in f32";
    return choice;
  }
  choice.accumulation = p.fp8.accumulation;
  if (p.fp8.accumulation == Fp8Accumulation::kAuto) {
    const bool is_short = fp8_accumulation_error(keys) <= kAllowed;
    choice.accumulation = is_short ? Fp8Accumulation::kOneLevel : Fp8Accumulation::kTwoLevel;
    choice.reason = one_level_text(keys);
    if (!is_short && find_variant(kernel, p, choice.accumulation, false) == nullptr) {
      choice.accumulation = Fp8Accumulation::kOneLevel;
      choice.reason += fmt::format(", but no kernel of head_dim {} has two levels", p.head_dim);
    }
  } else {
    choice.reason = "as asked for; " + one_level_text(keys);
  }
  choice.variant = find_variant(kernel, p, choice.accumulation, kernel.is_short);
  if (choice.variant != nullptr)
    choice.flush_tiles =
        static_cast<std::int32_t>(std::max<std::int64_t>(kFlushKeys / choice.variant->keys, 1));
  return choice;
}

AttentionProblem fp8_problem(AttentionFp8 kind, const AttentionProblem& problem) {
  if (attention_is_e4m3(problem)) return problem;
  const AttentionPrepareProblem prepare = fp8_prepare_problem(kind, problem);
  AttentionProblem p = prepared_problem(problem, {.scales = prepare.scales,
                                                  .v_layout = prepare.v_layout,
                                                  .accumulation = problem.fp8.accumulation});
  p.kernel = kind == AttentionFp8::kPlain ? problem.kernel : "auto";
  return p;
}

AttentionPrepareProblem fp8_prepare_problem(AttentionFp8 kind, const AttentionProblem& p) {
  const bool is_rotated = kind == AttentionFp8::kRotated;
  return prepare_problem(p,
                         {.scales = is_rotated ? ScaleSharing::kBlock : ScaleSharing::kHead,
                          .v_layout = Fp8ValueLayout::kColumns},
                         is_rotated);
}

Fp8Workspace fp8_workspace(const AttentionPreparePlan& prepare, const AttentionPlan& attention) {
  Fp8Workspace at;
  Carver carver;
  const auto place = [&](std::size_t bytes) {
    return carver.carve(static_cast<std::int64_t>(bytes));
  };
  at.prepare = place(prepare.workspace_bytes);
  at.attention = place(attention.workspace_bytes);
  at.q8 = place(prepare.q8_bytes);
  at.k8 = place(prepare.k8_bytes);
  at.v8 = place(prepare.v8_bytes);
  at.q_descale = place(4 * prepare.num_q_descales);
  at.k_descale = place(4 * prepare.num_k_descales);
  at.v_descale = place(4 * prepare.num_v_descales);
  at.v_descale_max = place(4 * prepare.num_v_descale_max);
  at.bytes = carver.total();
  return at;
}

void set_fp8_numbers(const AttentionPlan& plan, const AttentionKernel& kernel,
                     kernels::AttentionFp8Params& params) {
  const AttentionProblem& p = plan.problem;
  params.q_scales = strides_of(p, p.heads, p.q_len, kernels::kQueryScaleBlock);
  params.k_scales = strides_of(p, p.kv_heads, p.kv_len, kernels::kKeyScaleBlock);
  params.v_scales = params.k_scales;
  params.v_reference = {};
  params.v_reference.heads_per_scale = 1;
  if (p.fp8.scales == ScaleSharing::kBlock) {
    params.v_reference.batch_stride = p.kv_heads;
    params.v_reference.head_stride = 1;
  }
  if (attention_is_e4m3(p)) params.flush_tiles = choose_fp8(kernel, p).flush_tiles;
  params.is_f16_out = attention_out_dtype(p) == DType::kF16 ? 1 : 0;
}

void bind_fp8_scales(const AttentionArguments& a, kernels::AttentionFp8Params& params) {
  params.q_scales.values = a.q_descale;
  params.k_scales.values = a.k_descale;
  params.v_scales.values = a.v_descale;
  params.v_reference.values = a.v_descale_max;
}

}  // namespace tilewright::ops

namespace tilewright {

std::optional<AttentionPrepareProblem> prepare_problem(const AttentionPlan& plan) {
  const ops::AttentionKernel& kernel = ops::find_attention_kernel(plan.kernel);
  if (!kernel.prepares(plan.problem)) return std::nullopt;
  return ops::fp8_prepare_problem(kernel.fp8, plan.problem);
}

}  // namespace tilewright
