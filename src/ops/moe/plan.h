// From a problem to launches and a workspace, by arithmetic alone.
#pragma once

#include "tilewright/moe.h"

#include "device/device.h"
#include "formats/packed_weight.h"
#include "kernels/linear/band/band.h"
#include "kernels/linear/wide/sm90_wide_bf16.h"
#include "ops/linear/spread.h"
#include "ops/moe/grouped.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tilewright::ops {

/// How the two products are done.
enum class MoeKernel {
  kDirect,  ///< up to eight tokens, a layer in one launch: latency decides
  kBand,    ///< few tokens per expert: memory decides. bf16
  kSpread,  ///< some tens of tokens of a single expert: k divided over CTAs of the grid. bf16
  kWide,    ///< many: bf16 products, rows gathered
  kWide8,   ///< many: FP8 products, rows gathered and quantised
  kFew,     ///< Blackwell: block-scaled products, rows gathered and quantised; weights by few rows
  kPair,    ///< likewise; tiles of two CTAs that multiply together
};
/// One of the last two.
constexpr bool is_grouped(MoeKernel kernel) {
  return kernel == MoeKernel::kFew || kernel == MoeKernel::kPair;
}
const char* to_string(MoeKernel kernel) noexcept;

/// How a wide launch cuts one of the products.
struct MoeWideTile {
  int rows;  ///< of a CTA's tile: kWideBf16Rows, or kWideBf16TallRows
  int tile_tokens, cluster_rows, token_group, stages;

  bool is_tall() const noexcept { return rows == kernels::kWideBf16TallRows; }
};

/// What only the kernels' arguments need.
struct MoePlanDetails {
  MoeKernel kernel = MoeKernel::kBand;
  kernels::BandTile band_gate_up = {}, band_down = {};
  MoeWideTile wide = {};
  int wide8_variant = 0;
  int box_rows = 0;  ///< of grouped products

  /// If products are grouped.
  MoeGroupedVariant grouped(NumberFormat format) const {
    return moe_grouped_variant(format, kernel == MoeKernel::kFew);
  }
};

/// Where things stand in the workspace, in bytes. What a plan does not use has size 0.
struct MoeWorkspace {
  std::size_t status = 0, offsets = 0, slot_row = 0, row_token = 0, row_weight = 0;
  std::size_t ids = 0, weights = 0;  ///< unless they are given
  std::size_t x_rows = 0, x_scales = 0, h = 0, h_codes = 0, h_scales = 0;
  std::size_t x_row_scales = 0;  ///< of NVFP4 rows
  std::size_t y = 0;             ///< in the place of x_rows
  std::size_t sums = 0;          ///< of parts of k
  std::size_t total = 0;
};

struct MoePlanned {
  MoePlan plan;
  MoePlanDetails details;
  MoeWorkspace workspace;
};

/// A product of kSpread.
Spread moe_spread(const device::DeviceInfo& device, const MoeWeightsInfo& weights,
                  const MoeProblem& problem, bool is_gate_up);

MoeWorkspace make_moe_workspace(const device::DeviceInfo& device, const MoeWeightsInfo& weights,
                                const MoeProblem& problem, MoeKernel kernel);

/// Errors   as Moe's constructor
MoePlanned make_moe_plan(const device::DeviceInfo& device, const MoeWeightsInfo& weights,
                         const MoeProblem& problem);

/// Columns of e4m3 rows: whole blocks of 128.
constexpr std::int64_t padded_columns(std::int64_t columns) {
  return (columns + 127) / 128 * 128;
}
/// Scales of a column block are a row of this many: one per row of x, 16-byte aligned.
constexpr std::int64_t scale_pitch(std::int64_t rows) {
  return (rows + 3) / 4 * 4;
}

/// "nvfp4_braided", "fp8", ...: what entries of band, wide and direct are called after.
std::string packed_format_name(const MoeWeightsInfo& weights);

/// How problem and kernel read.
std::vector<PlanNote> moe_notes(const MoePlan& plan);

}  // namespace tilewright::ops
