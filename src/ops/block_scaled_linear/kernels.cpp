#include "ops/block_scaled_linear/kernels.h"

#include "formats/scale_layout.h"
#include "ops/operator/ceil_div.h"

#include <algorithm>

#include <fmt/format.h>

namespace tilewright::ops {

namespace {

using kernels::BlockScaledConfig;

// Of an SM, per cycle. Half of that rate for 8-bit operands, a quarter for bf16.
constexpr double kFp4Flop = 32768, kArrivingBytes = 64, kSharedBytes = 128;

// Columns of an instruction where rows of x are columns.
double columns_of_few(const BlockScaledConfig& c, std::int64_t m) {
  return static_cast<double>(ceil_div(std::min<std::int64_t>(m, c.tile.n), 8) * 8);
}

double flop_per_cycle(const BlockScaledConfig& c) {
  return kFp4Flop * c.instruction_k() / 64;
}

// Bytes of one step of one CTA.
struct StepBytes {
  double x, weight, scales;  ///< in shared memory
  double x_global;           ///< rows that there are
  double weight_global;      ///< as it lies in global memory: packed
};

// Rows that do not exist come as zeros from nowhere, but go to shared memory like others, if a tile
// has no fewer than 128.
StepBytes step_bytes(const BlockScaledConfig& c, std::int64_t m) {
  constexpr int kRow = kernels::kBlockScaledStepBytes;
  const double weight = c.is_swapped ? 128 * kRow : c.b_rows() * kRow;
  const auto rows = static_cast<double>(std::min<std::int64_t>(m, c.rows()));
  return {.x = (c.is_swapped ? columns_of_few(c, m) : 128) * kRow,
          .weight = weight,
          .scales = 512.0 * (1 + c.scale_atoms_n()) * c.scale_atoms_k(),
          .x_global = rows * kRow,
          .weight_global = c.unpacks_weight() ? weight / 2 : weight};
}

const char* stem(kernels::BlockScaledKind kind) {
  switch (kind) {
    case kernels::BlockScaledKind::kNvfp4:
      return "sm100_nvfp4_gemm";
    case kernels::BlockScaledKind::kMxfp8Mxfp4:
      return "sm100_mxfp8_mxfp4_gemm";
    case kernels::BlockScaledKind::kBf16:
      return "sm100_bf16_gemm";
    case kernels::BlockScaledKind::kE4m3:
      return "sm100_e4m3_gemm";
    case kernels::BlockScaledKind::kMxfp8:
      break;
  }
  return "sm100_mxfp8_gemm";
}

}  // namespace

std::string BlockScaledVariant::name() const {
  if (config.is_swapped) return "few";
  return fmt::format("{}cta_n{}", config.tile.cluster(), config.tile.n);
}

std::string BlockScaledVariant::entry() const {
  return fmt::format("{}_{}{}_{}", stem(config.kind), has_swiglu ? "swiglu_" : "",
                     is_requantising ? "nvfp4"
                     : is_mxfp8_out  ? "mxfp8"
                                     : "bf16",
                     name());
}

std::int64_t BlockScaledVariant::x_row_bytes(std::int64_t k) const {
  return k * kernels::kBlockScaledStepBytes / config.step_k();
}

std::int64_t BlockScaledVariant::weight_row_bytes(std::int64_t k) const {
  constexpr std::int64_t kUnpackedElems = 128;  // the tensor map's type 16U4_ALIGN16B wants them
  return config.unpacks_weight() ? ceil_div(k, kUnpackedElems) * kUnpackedElems / 2
                                 : x_row_bytes(k);
}

std::int64_t BlockScaledVariant::out_row_bytes(std::int64_t columns) const {
  return is_requantising ? (columns + 1) / 2 : is_mxfp8_out ? columns : 2 * columns;
}

std::int64_t BlockScaledVariant::out_scale_bytes(std::int64_t m, std::int64_t columns) const {
  if (!is_requantising && !is_mxfp8_out) return 0;
  return swizzled_scale_bytes(m, ceil_div(columns, is_requantising ? 16 : 32));
}

std::vector<BlockScaledVariant> block_scaled_variants(kernels::BlockScaledKind kind,
                                                      bool is_requantising) {
  std::vector<BlockScaledVariant> variants;
  for (const kernels::BlockScaledTile& tile : kernels::kBlockScaledTiles)
    variants.push_back({{kind, tile}, is_requantising});
  return variants;
}

std::vector<BlockScaledVariant> block_scaled_swiglu_variants(kernels::BlockScaledKind kind,
                                                             bool is_requantising,
                                                             bool is_mxfp8_out) {
  std::vector<BlockScaledVariant> variants;
  for (const kernels::BlockScaledTile& tile : kernels::kBlockScaledSwigluTiles)
    variants.push_back({{kind, tile}, is_requantising, is_mxfp8_out, true});
  return variants;
}

double memory_bytes_per_us(const device::DeviceInfo& device) noexcept {
  return 2e-3 * device.memory_clock_khz * device.memory_bus_bits / 8;  // two transfers a cycle
}

BlockScaledCost block_scaled_cost(const device::DeviceInfo& device,
                                  const BlockScaledVariant& variant,
                                  const BlockScaledSizes& sizes) {
  const BlockScaledConfig& c = variant.config;
  const auto number = [](std::int64_t x) { return static_cast<double>(x); };
  BlockScaledCost cost;
  cost.tiles = ceil_div(sizes.m, c.tile_m()) * ceil_div(sizes.n, c.columns());
  const std::int64_t room = std::max(device.num_sms / c.tile.cluster(), 1);
  cost.clusters = static_cast<std::uint32_t>(std::min(room, cost.tiles));
  if (cost.tiles == 0) return cost;

  const StepBytes step = step_bytes(c, sizes.m);
  const double steps = number(ceil_div(sizes.k, c.step_k()));
  const double rounds = number(ceil_div(cost.tiles, cost.clusters));
  const double arriving = step.x_global + step.weight_global + step.scales;
  const double out_bytes = variant.is_requantising ? 0.5 + 1.0 / 16
                           : variant.is_mxfp8_out  ? 1 + 1.0 / 32
                                                   : 2.0;
  const double columns = c.is_swapped ? columns_of_few(c, sizes.m) : c.tile.n;
  // Results of few rows pass shared memory as f32 sums.
  const double out = c.is_swapped ? 128.0 * columns * 4
                                  : 128.0 * number(variant.out_columns(c.tile.n)) * out_bytes;
  const double flop = 2.0 * 128 * columns * c.step_k();
  cost.tensor_clocks = rounds * steps * flop / flop_per_cycle(c);
  cost.arriving_clocks = rounds * (steps * arriving + out) / kArrivingBytes;
  // Every byte is written once and read once.
  cost.shared_clocks =
      2 * rounds * (steps * (step.x + step.weight + step.scales) + out) / kSharedBytes;
  cost.l2_bytes = number(cost.tiles) * c.tile.cluster() *
                  (steps * (arriving - step.weight_global / 2 * (c.tile.pairs - 1)) + out);

  const std::int64_t blocks = sizes.k / variant.scale_block();
  const std::int64_t scale_bytes =
      c.has_scales() ? swizzled_scale_bytes(sizes.m, blocks) + swizzled_scale_bytes(sizes.n, blocks)
                     : 0;
  cost.memory_bytes =
      number(sizes.m * variant.x_row_bytes(sizes.k) + sizes.n * variant.weight_row_bytes(sizes.k) +
             sizes.m * variant.out_row_bytes(variant.out_columns(sizes.n)) + scale_bytes);
  const double clocks = std::max({cost.tensor_clocks, cost.arriving_clocks, cost.shared_clocks});
  cost.us =
      std::max(clocks / (1e-3 * device.clock_khz), cost.memory_bytes / memory_bytes_per_us(device));
  return cost;
}

}  // namespace tilewright::ops
