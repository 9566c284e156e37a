// What of a layer lies where in the workspace.
#include "ops/operator/workspace.h"

#include "formats/grouped_scales.h"
#include "formats/scale_layout.h"
#include "kernels/moe/permute.h"
#include "ops/moe/plan.h"
#include "ops/moe/problem.h"

#include <algorithm>

namespace tilewright::ops {

namespace {

// Rows of x and h in codes, with scales in whole tiles.
void add_grouped_parts(const MoeWeightsInfo& w, std::int64_t rows, Carver& carver,
                       MoeWorkspace& at) {
  const MoeGroupedVariant variant = moe_grouped_variant(w.format, true);
  const std::int64_t tiles = grouped_scale_tiles(rows, w.experts + (w.has_shared ? 1 : 0));
  const auto scales = [&](std::int64_t k) {
    return carver.carve(tiles * variant.scale_tiles(k) * kScaleTileBytes);
  };
  at.x_rows = carver.carve(rows * variant.x_row_bytes(w.hidden));
  at.x_scales = scales(w.hidden);
  if (variant.config.is_nvfp4()) at.x_row_scales = carver.carve(rows * 4);
  at.h_codes = carver.carve(rows * variant.x_row_bytes(w.inter));
  at.h_scales = scales(w.inter);
}

}  // namespace

MoeWorkspace make_moe_workspace(const device::DeviceInfo& device, const MoeWeightsInfo& w,
                                const MoeProblem& p, MoeKernel kernel) {
  MoeWorkspace at;
  Carver carver;
  const std::int64_t slots = p.tokens * p.topk, rows = moe_rows(w, p);
  at.status = carver.carve(sizeof(kernels::MoeStatus));
  at.offsets = carver.carve((w.experts + 2) * 4);
  const bool has_rows = keeps_rows(p);  // x's own, and those of y are out's
  if (!has_rows) {
    at.slot_row = carver.carve(slots * 4);
    at.row_token = carver.carve(rows * 4);
    at.row_weight = carver.carve(rows * 4);
    const bool is_routed = p.routing != MoeRouting::kGiven;
    if (is_routed || p.all_experts > 0) at.ids = carver.carve(slots * 4);
    if (is_routed) at.weights = carver.carve(slots * 4);
  }
  if (is_grouped(kernel)) {
    add_grouped_parts(w, rows, carver, at);
    if (!has_rows) at.y = carver.carve(rows * w.hidden * 2);
    at.total = carver.total();
    return at;
  }
  at.h = carver.carve(rows * w.inter * 2);
  if (kernel == MoeKernel::kSpread) {  // one product after the other
    const auto bytes = [&](bool is_gate_up) {
      return static_cast<std::int64_t>(moe_spread(device, w, p, is_gate_up).workspace_bytes());
    };
    at.sums = carver.carve(std::max(bytes(true), bytes(false)));
  }
  if (!has_rows && kernel != MoeKernel::kDirect) {  // e4m3 rows are padded, but half as wide or 128
    at.x_rows = at.y = carver.carve(rows * w.hidden * 2);
  }
  if (kernel == MoeKernel::kWide8) {
    at.x_rows = carver.carve(rows * padded_columns(w.hidden));
    at.x_scales = carver.carve(padded_columns(w.hidden) / 128 * scale_pitch(rows) * 4);
    at.h_codes = carver.carve(rows * padded_columns(w.inter));
    at.h_scales = carver.carve(padded_columns(w.inter) / 128 * scale_pitch(rows) * 4);
  }
  at.total = carver.total();
  return at;
}

}  // namespace tilewright::ops
