// The rotation taken out of attention's output: checks and launch.
#include "tilewright/cache_writer.h"

#include "device/internal.h"
#include "device/kernel_registry.h"
#include "formats/kv_page.h"
#include "kernels/sparse_attention/cache/inverse_rope.h"
#include "ops/operator/arguments.h"
#include "ops/operator/ceil_div.h"
#include "ops/operator/operator.h"
#include "ops/operator/problem_checks.h"
#include "ops/operator/rotary_checks.h"

#include <limits>
#include <utility>

namespace tilewright {

struct InverseRope::State {
  Device handle;  // keeps the device open
  device::Kernel rotate, quantize;
};

namespace {

const char* entry_of(bool has_codes) {
  return has_codes ? "inverse_rope_fp8" : "inverse_rope";
}

device::LaunchConfig launch_of(std::int64_t rows, bool has_codes) {
  const std::int64_t rows_of_a_cta =
      has_codes ? kernels::kInverseRopeFp8Rows : kernels::kInverseRopeRows;
  return {.grid = {ops::ctas_for(rows, rows_of_a_cta)},
          .block = {kernels::kInverseRopeThreads},
          .is_dependent_launch = true};
}

Plan make_plan(const device::DeviceInfo& device, std::int64_t tokens, std::int64_t heads,
               bool has_codes) {
  ops::ProblemChecks checks("inverse rope");
  if (ops::all_held({checks.range("tokens", tokens, 0), checks.range("heads", heads, 0, 1 << 20)}))
    checks
        .expect(tokens * heads <= std::numeric_limits<std::int32_t>::max(), "tokens", tokens,
                "fewer than 2^31 rows in one call, with heads = {}", heads)
        .remedy("Split them.");
  checks.finish();
  Plan plan;
  const std::int64_t rows = tokens * heads;
  plan.launches = {ops::planned_launch("rotate", entry_of(has_codes), launch_of(rows, has_codes))};
  ops::require_built("inverse rope", device, plan.launches);
  if (rows == 0) plan.launches.clear();
  // The rotated part read and written; or all read, and codes and scales written.
  const double row_bytes = has_codes ? 3.0 * kKvDims + 4.0 * kKvDims / 128 : 4.0 * kKvRopeDims;
  plan.bytes = static_cast<double>(rows) * row_bytes;
  plan.notes = {{"rotate", fmt::format("{} tokens of {} heads of {} back{}", tokens, heads, kKvDims,
                                       has_codes ? ", then quantised to e4m3" : "")}};
  return plan;
}

}  // namespace

InverseRope::InverseRope(const Device& device) {
  const device::Device& internal = opened(device);
  state_ = std::make_unique<State>(State{device, device::load_kernel(internal, entry_of(false)),
                                         device::load_kernel(internal, entry_of(true))});
}

InverseRope::~InverseRope() = default;
InverseRope::InverseRope(InverseRope&&) noexcept = default;
InverseRope& InverseRope::operator=(InverseRope&&) noexcept = default;

Plan InverseRope::plan(std::int64_t tokens, std::int64_t heads, bool has_codes) const {
  return make_plan(opened(state_->handle).info(), tokens, heads, has_codes);
}

Plan plan_inverse_rope(const Device& device, std::int64_t tokens, std::int64_t heads,
                       bool has_codes) {
  return make_plan(opened(device).info(), tokens, heads, has_codes);
}

void InverseRope::run(const InverseRopeArguments& a) const {
  constexpr ops::ArgumentChecks kChecks("inverse rope");
  constexpr std::size_t kAlignment = 16;
  constexpr std::int64_t kElems = 8, kBlocksPerHead = kKvDims / 128;
  kChecks.range("tokens", a.tokens, 0);
  kChecks.range("heads", a.heads, 0, 1 << 20);
  kChecks.range("tokens * heads", a.tokens * a.heads, 0);
  if (a.tokens * a.heads == 0) return;
  const bool has_codes = a.codes != nullptr;
  kernels::InverseRopeParams p = {};
  p.head_stride = kChecks.stride("head_stride", a.head_stride, kKvDims, kElems);
  p.token_stride = kChecks.stride("token_stride", a.token_stride, a.heads * kKvDims, kElems);
  kChecks.range("rope.positions", a.rope.positions, 1);
  kChecks.address("out", a.out, kAlignment);
  kChecks.address("positions", a.positions, 4);
  ops::check_one_table(kChecks, a.rope, 4);
  if (has_codes) {
    kChecks.address("codes", a.codes, kAlignment);
    kChecks.address("scales", a.scales, a.has_pow2_scales ? 1 : 4);
  }
  const std::int64_t blocks = a.heads * kBlocksPerHead;
  p.out = static_cast<std::uint16_t*>(a.out);
  p.positions = a.positions;
  p.rope = a.rope.angles;
  p.codes = static_cast<std::uint8_t*>(a.codes);
  p.scales = a.scales;
  p.code_stride = a.heads * kKvDims;
  p.scale_token_stride = a.has_block_major_scales ? 1 : blocks;
  p.scale_block_stride = a.has_block_major_scales ? a.tokens : 1;
  p.tokens = static_cast<std::int32_t>(a.tokens);
  p.heads = static_cast<std::int32_t>(a.heads);
  p.num_positions = static_cast<std::int32_t>(a.rope.positions);
  p.is_pow2 = a.has_pow2_scales ? 1 : 0;
  p.code_order = a.has_operand_order ? kernels::CodeOrder::kOperand : kernels::CodeOrder::kPlain;
  const auto stream = ops::lent_stream(opened(state_->handle), a.stream);
  (has_codes ? state_->quantize : state_->rotate)
      .launch(launch_of(a.tokens * a.heads, has_codes), p, stream);
}

}  // namespace tilewright
