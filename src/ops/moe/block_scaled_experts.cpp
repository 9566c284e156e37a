#include "ops/moe/block_scaled_experts.h"

#include "base/error.h"
#include "formats/packed_matrix.h"
#include "formats/scale_layout.h"
#include "ops/block_scaled_linear/kernels.h"
#include "ops/block_scaled_linear/plan.h"
#include "ops/block_scaled_linear/row_scales.h"
#include "ops/linear/pack.h"
#include "ops/operator/problem_checks.h"

#include <algorithm>
#include <utility>

namespace tilewright::ops {

namespace {

// Where row r of part p of several goes.
std::size_t row_of(std::int64_t r, std::size_t p, std::size_t parts) {
  if (parts == 1) return static_cast<std::size_t>(r);
  return static_cast<std::size_t>(kernels::swiglu_row(static_cast<std::int32_t>(r), p == 1));
}

// Rows of `bytes` each go to their places, `pitch` apart.
void place_rows(std::span<const std::uint8_t> from, std::size_t bytes, std::size_t part,
                std::size_t parts, std::size_t pitch, std::vector<std::uint8_t>& to) {
  const auto rows = static_cast<std::int64_t>(bytes == 0 ? 0 : from.size() / bytes);
  for (std::int64_t r = 0; r < rows; ++r) {
    const auto row = from.subspan(static_cast<std::size_t>(r) * bytes, bytes);
    std::ranges::copy(row,
                      to.begin() + static_cast<std::ptrdiff_t>(row_of(r, part, parts) * pitch));
  }
}

}  // namespace

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

std::int64_t block_scaled_row_bytes(NumberFormat format, std::int64_t k) {
  return block_scaled_variants(block_scaled_kind(format), false).front().weight_row_bytes(k);
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
  const auto pitch = static_cast<std::size_t>(row_bytes_);
  const std::int64_t of_row = k_ / block_scale_columns(format_);
  std::vector<std::uint8_t> values(static_cast<std::size_t>(rows_) * pitch);
  std::vector<std::uint8_t> scales(static_cast<std::size_t>(rows_ * of_row));
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const HostWeight& w = *parts[p];
    place_rows(w.values, static_cast<std::size_t>(w.value_row_bytes()), p, parts.size(), pitch,
               values);
    place_rows(block_scaled_row_scales(w), static_cast<std::size_t>(of_row), p, parts.size(),
               static_cast<std::size_t>(of_row), scales);
    alphas_.push_back(w.global_scale);
  }
  values_.copy_from_host(std::as_bytes(std::span(values)), count_ * values.size());
  const std::vector<std::uint8_t> ordered = swizzle_scales(scales, rows_, of_row);
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
