// What a tcgen05.mma reads and writes, for observers.
#include "sim/insn/tensor/tcgen05_mma.h"

namespace tilewright::sim {
namespace {

TensorRegion region_of(const MmaCall& call, TensorRole role, int cta) {
  TensorRegion region;
  region.role = role;
  region.kind = AccessKind::kRead;
  region.rank = call.ctas[static_cast<std::size_t>(cta)]->rank;
  region.m = static_cast<std::uint32_t>(call.shape.m);
  region.n = static_cast<std::uint32_t>(call.shape.n);
  region.k = static_cast<std::uint32_t>(call.fields.k);
  region.is_ws = call.shape.is_ws;
  region.cta = static_cast<std::uint32_t>(cta);
  return region;
}

/// Lanes with rows of D, and of A in Tensor Memory.
TensorLanes used_lanes(const MmaCall& call) {
  TensorLanes lanes{};
  for (int part = 0; part < column_parts(call.shape); ++part) {
    for (int row = 0; row < rows_per_cta(call.shape); ++row) {
      const std::uint32_t lane = lane_of_row(call, row, part);
      lanes[lane / 32] |= 1u << lane % 32;
    }
  }
  return lanes;
}

void add_accumulator(const MmaCall& call, int cta, const TensorLanes& lanes,
                     std::vector<TensorRegion>& regions) {
  TensorRegion region = region_of(call, TensorRole::kAccumulator, cta);
  region.kind = call.keeps_d ? AccessKind::kAtomic : AccessKind::kWrite;
  region.column = call.d.column;
  region.num_columns = static_cast<std::uint32_t>(call.shape.n / column_parts(call.shape));
  region.lane_base = call.d.lane;
  const TensorLanes& disabled = call.disabled[static_cast<std::size_t>(cta)];
  for (std::size_t i = 0; i < lanes.size(); ++i) region.lanes[i] = lanes[i] & ~disabled[i];
  regions.push_back(region);
}

void add_a(const MmaCall& call, int cta, const TensorLanes& lanes,
           std::vector<TensorRegion>& regions) {
  const MmaOperand operand = operand_of(call, true);
  TensorRegion region = region_of(call, TensorRole::kA, cta);
  if (call.form->is_shifting_a) region.kind = AccessKind::kAtomic;
  region.column = call.a.column;
  region.num_columns = static_cast<std::uint32_t>(tensor_cells(operand));
  region.lane_base = call.a.lane;
  region.lanes = lanes;
  region.element_bits = static_cast<std::uint32_t>(operand.container_bits);
  regions.push_back(region);
}

void add_scales(const MmaCall& call, int cta, bool is_a, std::vector<TensorRegion>& regions) {
  const MmaShape& s = call.shape;
  const int rows = is_a ? rows_per_cta(s) : s.n / column_parts(s);
  const int id = is_a ? call.fields.a_scale_id : call.fields.b_scale_id;
  TensorRegion region = region_of(call, is_a ? TensorRole::kScaleA : TensorRole::kScaleB, cta);
  region.column = (is_a ? call.a_scales : call.b_scales).column;
  region.num_columns =
      static_cast<std::uint32_t>(scale_columns(rows) * ((id + scales_per_row(call) + 3) / 4));
  region.lanes = {kAllLanes, kAllLanes, kAllLanes, kAllLanes};
  region.element_bits = 8;
  regions.push_back(region);
}

void add_shared(const MmaCall& call, const Cta& cta, bool is_a, MmaFootprint& out) {
  const SharedDescriptor descriptor =
      decode_shared_descriptor(is_a ? call.a_descriptor : call.b_descriptor);
  const MmaOperand operand = operand_of(call, is_a);
  // What lies beyond shared memory stops the instruction when it reads; observers see the rest.
  for (const SharedRun& run : runs_of(descriptor, operand, cta.shared_bytes)) {
    const std::uint64_t address = std::uint64_t{cta.rank} << kSharedRankShift | run.address;
    out.shared.push_back({AccessKind::kRead, Proxy::kAsync, true, address, run.bytes});
  }
  const OperandExtent extent = extent_of(operand);
  out.operands.push_back({is_a ? 'A' : 'B', cta.rank, descriptor, operand.major,
                          extent.contiguous_bytes, extent.outer});
}

}  // namespace

MmaFootprint footprint_of(const MmaCall& call) {
  MmaFootprint out;
  const TensorLanes lanes = used_lanes(call);
  for (int cta = 0; cta < call.shape.cta_group; ++cta) {
    const Cta& memory = *call.ctas[static_cast<std::size_t>(cta)];
    add_accumulator(call, cta, lanes, out.regions);
    if (call.form->mode.is_a_in_tmem) {
      add_a(call, cta, lanes, out.regions);
    } else {
      add_shared(call, memory, true, out);
    }
    if (call.form->mode.scale_block != 0) {
      add_scales(call, cta, true, out.regions);
      add_scales(call, cta, false, out.regions);
    }
    add_shared(call, memory, false, out);
  }
  return out;
}

}  // namespace tilewright::sim
