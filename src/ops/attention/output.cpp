// The rotation taken out of attention's output: checks and launch.
#include "tilewright/cache_writer.h"

#include "device/internal.h"
#include "device/kernel_registry.h"
#include "formats/kv_page.h"
#include "kernels/sparse_attention/cache/inverse_rope.h"
#include "ops/operator/arguments.h"
#include "ops/operator/operator.h"

#include <utility>

namespace tilewright {

struct InverseRope::State {
  Device handle;  // keeps the device open
  device::Kernel rotate, quantize;
};

InverseRope::InverseRope(const Device& device) {
  const device::Device& internal = opened(device);
  state_ = std::make_unique<State>(State{device, device::load_kernel(internal, "inverse_rope"),
                                         device::load_kernel(internal, "inverse_rope_fp8")});
}

InverseRope::~InverseRope() = default;
InverseRope::InverseRope(InverseRope&&) noexcept = default;
InverseRope& InverseRope::operator=(InverseRope&&) noexcept = default;

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
  kChecks.range("rope_positions", a.rope_positions, 1);
  kChecks.address("out", a.out, kAlignment);
  kChecks.address("positions", a.positions, 4);
  kChecks.address("rope", a.rope, 4);
  if (has_codes) {
    kChecks.address("codes", a.codes, kAlignment);
    kChecks.address("scales", a.scales, a.has_pow2_scales ? 1 : 4);
  }
  const std::int64_t blocks = a.heads * kBlocksPerHead;
  p.out = static_cast<std::uint16_t*>(a.out);
  p.positions = a.positions;
  p.rope = a.rope;
  p.codes = static_cast<std::uint8_t*>(a.codes);
  p.scales = a.scales;
  p.code_stride = a.heads * kKvDims;
  p.scale_token_stride = a.has_block_major_scales ? 1 : blocks;
  p.scale_block_stride = a.has_block_major_scales ? a.tokens : 1;
  p.tokens = static_cast<std::int32_t>(a.tokens);
  p.heads = static_cast<std::int32_t>(a.heads);
  p.num_positions = static_cast<std::int32_t>(a.rope_positions);
  p.is_pow2 = a.has_pow2_scales ? 1 : 0;
  p.code_order = a.has_operand_order ? kernels::CodeOrder::kOperand : kernels::CodeOrder::kPlain;
  const std::int64_t rows = has_codes ? kernels::kInverseRopeFp8Rows : kernels::kInverseRopeRows;
  const std::int64_t ctas = (a.tokens * a.heads + rows - 1) / rows;
  const auto stream = ops::lent_stream(opened(state_->handle), a.stream);
  (has_codes ? state_->quantize : state_->rotate)
      .launch({.grid = {static_cast<std::uint32_t>(ctas)},
               .block = {kernels::kInverseRopeThreads},
               .is_dependent_launch = true},
              p, stream);
}

}  // namespace tilewright
