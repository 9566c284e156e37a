#include "ops/moe/block_scaled_experts.h"

#include "base/error.h"
#include "formats/scale_layout.h"
#include "ops/block_scaled_linear/rows.h"
#include "ops/linear/pack.h"
#include "ops/operator/problem_checks.h"

#include <utility>

namespace tilewright::ops {

void check_block_scaled_experts(const MoeWeightsInfo& info) {
  ProblemChecks checks("moe");
  checks
      .expect(info.format != NumberFormat::kBf16, "format", info.format,
              "nvfp4, mxfp4 or fp8 for block_scaled activations")
      .remedy("Quantise the experts, or prepare them for bf16 activations.");
  for (const auto& [name, value] :
       {std::pair{"hidden", info.hidden}, std::pair{"inter", info.inter}}) {
    checks.expect(value % 32 == 0, name, value, "a multiple of 32 for block_scaled activations")
        .remedy("Pad the weights with zeros.");
  }
  checks.finish();
}

BlockScaledPacker::BlockScaledPacker(const device::Device& device, std::size_t matrices,
                                     std::size_t parts, NumberFormat format, std::int64_t n,
                                     std::int64_t k)
    : device_(device),
      format_(format),
      rows_(n * static_cast<std::int64_t>(parts)),
      k_(k),
      row_bytes_(block_scaled_row_bytes(format, k)),
      scale_bytes_(swizzled_scale_bytes(rows_, k / block_scale_columns(format))),
      values_(device, matrices * static_cast<std::size_t>(rows_ * row_bytes_)),
      scales_(device, matrices * static_cast<std::size_t>(scale_bytes_)) {}

void BlockScaledPacker::add(const std::vector<const HostWeight*>& parts) {
  const BlockScaledRows rows = block_scaled_rows(parts);
  for (const HostWeight* const part : parts) alphas_.push_back(part->global_scale);
  values_.copy_from_host(std::as_bytes(std::span(rows.values)), count_ * rows.values.size());
  const std::vector<std::uint8_t> ordered =
      swizzle_scales(rows.scales, rows_, k_ / block_scale_columns(format_));
  scales_.copy_from_host(std::as_bytes(std::span(ordered)), count_ * ordered.size());
  ++count_;
}

void BlockScaledPacker::repeat(std::size_t from) {
  const device::CurrentContext current = device_.make_current();
  for (const auto& [buffer, size] :
       {std::pair{&values_, rows_ * row_bytes_}, std::pair{&scales_, scale_bytes_}}) {
    const auto bytes = static_cast<std::size_t>(size);
    device_.check(device_.cu().memcpy_dtod(buffer->address() + count_ * bytes,
                                           buffer->address() + from * bytes, bytes),
                  "cuMemcpyDtoD");
  }
  const std::size_t each = alphas_.size() / count_;
  for (std::size_t i = 0; i < each; ++i) alphas_.push_back(alphas_[from * each + i]);
  ++count_;
}

PackedExperts BlockScaledPacker::finish() && {
  const kernels::PackedShape shape = {to_kernel(format_), static_cast<std::int32_t>(rows_),
                                      static_cast<std::int32_t>(k_)};
  return {.shape = shape,
          .bricks = std::move(values_),
          .block_scales = device::Buffer(device_, 0),
          .alphas = device::Buffer::from(device_, alphas_),
          .scales = std::move(scales_),
          .row_bytes = row_bytes_};
}

}  // namespace tilewright::ops
