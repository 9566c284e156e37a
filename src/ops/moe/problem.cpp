#include "ops/moe/problem.h"

#include "formats/packed_matrix.h"
#include "formats/scale_layout.h"
#include "kernels/linear/grouped/sm100_grouped.h"
#include "kernels/moe/route.h"
#include "ops/block_scaled_linear/rows.h"
#include "ops/linear/pack.h"
#include "ops/moe/block_scaled_experts.h"
#include "ops/operator/problem_checks.h"

#include <algorithm>
#include <cmath>

namespace tilewright::ops {

namespace {

// Whether there are experts to choose from.
bool check_weights(ProblemChecks& checks, const MoeWeightsInfo& w) {
  for (const auto& [name, value] : {std::pair{"hidden", w.hidden}, std::pair{"inter", w.inter}}) {
    checks
        .expect(value >= 16 && value % 16 == 0 && value <= 1 << 20, name, value,
                "a multiple of 16 from 16 to 2^20")
        .remedy("Pad the weights with zeros.");
  }
  static_assert(kernels::kMoeMaxExperts < kernels::kMoeGroupedMaxExperts);
  return bool(checks.range("experts", w.experts, 1, kernels::kMoeMaxExperts));
}

// Tokens that come grouped by expert.
void check_grouped(ProblemChecks& checks, const MoeWeightsInfo& w, const MoeProblem& p) {
  const bool is_grouped = is_grouped_input(p);
  const std::int64_t most = is_grouped ? p.tokens : 0;
  checks.expect(p.expected_tokens >= 0 && p.expected_tokens <= most, "expected_tokens",
                p.expected_tokens, "0, or of grouped tokens what an expert has room for, at most");
  if (!is_grouped) return;
  checks.expect(p.topk == 1, "topk", p.topk, "1: grouped tokens are of one expert each");
  checks.expect(moe_rows(w, p) <= kMaxMoeRoom, "tokens", p.tokens,
                "at most {} in all of {} experts", kMaxMoeRoom, w.experts);
  checks
      .expect(!w.has_shared, "has_shared", w.has_shared,
              "false: grouped tokens are of the routed experts")
      .remedy("Prepare the shared expert on its own.");
  checks.expect(p.out_dtype == DType::kBF16, "out_dtype", p.out_dtype,
                "BF16 for grouped tokens: nothing is summed");
}

void check_single(ProblemChecks& checks, const MoeWeightsInfo& w, const MoeProblem& p) {
  if (!is_single(p)) return;
  checks.expect(w.experts == 1 && !w.has_shared, "experts", w.experts + (w.has_shared ? 1 : 0),
                "1 for the routing of a single expert");
  checks.expect(p.topk == 1, "topk", p.topk, "1: a single expert has all tokens");
}

// A rank's weights among those of all.
void check_share(ProblemChecks& checks, const MoeWeightsInfo& w, const MoeProblem& p) {
  if (p.all_experts == 0) {
    checks.expect(p.first_expert == 0, "first_expert", p.first_expert, "0 without all_experts");
    return;
  }
  checks.expect(p.all_experts >= w.experts && p.all_experts <= kernels::kMoeMaxExperts,
                "all_experts", p.all_experts, "0, or {} (those of the weights) to {}", w.experts,
                kernels::kMoeMaxExperts);
  checks.expect(p.first_expert >= 0 && p.first_expert <= p.all_experts - w.experts, "first_expert",
                p.first_expert, "0 to {}, so that {} experts follow of {}",
                p.all_experts - w.experts, w.experts, p.all_experts);
  checks.expect(!keeps_rows(p), "all_experts", p.all_experts,
                "0 for tokens that are not routed: they come to their experts' rank");
  checks
      .expect(!w.has_shared, "has_shared", w.has_shared,
              "false for a share of the experts: every rank would add the shared one")
      .remedy("Prepare the shared expert on its own.");
}

void check_routing(ProblemChecks& checks, const MoeProblem& p) {
  const bool is_hash = p.routing == MoeRouting::kHash;
  checks.expect(is_hash ? p.vocab > 0 && p.vocab < std::int64_t{1} << 31 : p.vocab == 0, "vocab",
                p.vocab, "the rows of the table if routing is by hash, and 0 otherwise");
  checks.expect(!p.has_bias || p.routing == MoeRouting::kLogits, "has_bias", p.has_bias,
                "false: only routing by logits has a bias, which moves the selection");
  checks.expect(is_zero_or_normal_float(p.route_scale), "route_scale", p.route_scale,
                "a finite number: 0, or a normal one of fp32");
}

}  // namespace

void check_moe_weights(const MoeWeightsInfo& w) {
  ProblemChecks checks("moe");
  check_weights(checks, w);
  checks.finish();
}

void check_moe_problem(const MoeWeightsInfo& w, const MoeProblem& p) {
  ProblemChecks checks("moe");
  const bool has_experts = check_weights(checks, w);
  const std::int64_t most_tokens = is_grouped_input(p) ? kMaxMoeRoom : kMaxMoeTokens;
  checks
      .expect(p.tokens >= 0 && p.tokens <= most_tokens, "tokens", p.tokens, "0 to {}", most_tokens)
      .remedy("Split them.");
  if (has_experts) {
    const std::int64_t routed = routed_experts(w, p);
    const auto most = std::min<std::int64_t>(routed, kernels::kMoeMaxTopk);
    checks.expect(p.topk >= 1 && p.topk <= most, "topk", p.topk, "1 to {} of {} experts", most,
                  routed);
    checks.expect(p.logits_stride == 0 || (p.logits_stride >= routed && p.logits_stride < 1 << 20),
                  "logits_stride", p.logits_stride, "0, or {} (experts) to 2^20", routed);
    check_share(checks, w, p);
  }
  checks.expect(
      p.swiglu_limit > 0 && (std::isinf(p.swiglu_limit) || is_normal_float(p.swiglu_limit)),
      "swiglu_limit", p.swiglu_limit, "a normal number of fp32 > 0, infinity for none");
  checks.expect(p.out_dtype == DType::kBF16 || p.out_dtype == DType::kF32, "out_dtype", p.out_dtype,
                "BF16 or F32");
  check_routing(checks, p);
  if (has_experts) check_grouped(checks, w, p);
  if (has_experts) check_single(checks, w, p);
  checks.finish();
}

std::int64_t routed_experts(const MoeWeightsInfo& w, const MoeProblem& p) noexcept {
  return p.all_experts == 0 ? w.experts : p.all_experts;
}

std::int64_t moe_rows(const MoeWeightsInfo& w, const MoeProblem& p) noexcept {
  if (is_in_rooms(p)) return p.tokens * w.experts;
  return p.tokens * (p.topk + (w.has_shared ? 1 : 0));
}

std::int64_t moe_expected_rows(const MoeWeightsInfo& w, const MoeProblem& p) noexcept {
  if (p.all_experts > 0) {  // uniform routing
    const std::int64_t slots = p.tokens * p.topk;
    return (slots * w.experts + p.all_experts - 1) / p.all_experts;
  }
  if (p.expected_tokens == 0) return moe_rows(w, p);
  return std::min(moe_rows(w, p), w.experts * p.expected_tokens);
}

double expected_active_experts(const MoeWeightsInfo& w, const MoeProblem& p) noexcept {
  const auto experts = static_cast<double>(w.experts);
  if (is_in_rooms(p) || p.expected_tokens > 0) return p.tokens == 0 ? 0 : experts;
  const double missed = 1 - static_cast<double>(p.topk) / static_cast<double>(routed_experts(w, p));
  return experts * (1 - std::pow(missed, static_cast<double>(p.tokens)));
}

double expert_bytes(const MoeWeightsInfo& w) noexcept {
  const bool is_block_scaled =
      w.activations == LinearActivations::kBlockScaled && w.format != NumberFormat::kBf16;
  const auto bytes = [&](std::int64_t n, std::int64_t k) {
    if (is_block_scaled) {
      const std::int64_t scales = k / block_scale_columns(w.format);
      return static_cast<double>(n * block_scaled_row_bytes(w.format, k) +
                                 swizzled_scale_bytes(n, scales));
    }
    const kernels::PackedShape shape = {to_kernel(w.format), static_cast<std::int32_t>(n),
                                        static_cast<std::int32_t>(k)};
    return static_cast<double>(shape.bytes());
  };
  return bytes(2 * w.inter, w.hidden) + bytes(w.hidden, w.inter);
}

double moe_flops(const MoeWeightsInfo& w, const MoeProblem& p) noexcept {
  return 6.0 * static_cast<double>(w.hidden) * static_cast<double>(w.inter) *
         static_cast<double>(moe_expected_rows(w, p));
}

double moe_bytes(const MoeWeightsInfo& w, const MoeProblem& p) noexcept {
  const auto rows = static_cast<double>(moe_expected_rows(w, p));
  const double tokens = is_grouped_input(p) ? rows : static_cast<double>(p.tokens);
  const double active = expected_active_experts(w, p) + (w.has_shared && p.tokens > 0 ? 1.0 : 0.0);
  const double out = p.out_dtype == DType::kF32 ? 4 : 2;
  return active * expert_bytes(w) + tokens * static_cast<double>(w.hidden) * (2 + out) +
         rows * static_cast<double>(w.inter) * 4;
}

}  // namespace tilewright::ops
