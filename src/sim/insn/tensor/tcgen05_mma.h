// What the parts of tcgen05.mma share: reading the text (tcgen05_mma.cpp), telling observers what
// it touches (tcgen05_mma_events.cpp), and computing (tcgen05_mma_perform.cpp).
#pragma once

#include "sim/insn/tensor/tensor_address.h"
#include "sim/insn/tensor/tensor_pipe.h"
#include "sim/state/warp.h"
#include "sim/tensor/mma_descriptor.h"
#include "sim/tensor/mma_layout.h"
#include "sim/tensor/mma_operand.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tilewright::sim {

struct MmaForm {
  MmaMode mode;
  TensorAddressForm d, a, a_scales, b_scales;
  Row a_descriptor = kNoRow, b_descriptor = kNoRow, descriptor = kNoRow;
  std::vector<Row> disabled_lanes;  ///< 4, 8 or none
  Row zero_columns = kNoRow;
  Row enable = kNoRow;
  std::uint32_t enable_flip = 0;
  int input_shift = 0;  ///< scale-input-d
  bool is_shifting_a = false;
};

/// What an instruction was given by one thread.
struct MmaCall {
  const MmaForm* form = nullptr;
  MmaDescriptor fields;
  MmaShape shape;
  std::uint64_t a_descriptor = 0, b_descriptor = 0;
  TensorAddress d, a, a_scales, b_scales;
  std::array<TensorLanes, 2> disabled{};  ///< of each CTA
  bool keeps_d = false;
  std::array<Cta*, 2> ctas{};  ///< by their number in the pair
  std::uint32_t lane = 0;      ///< the thread

  std::span<Cta* const> all_ctas() const {
    return std::span(ctas).first(static_cast<std::size_t>(shape.cta_group));
  }
};

/// The part of A or B that one CTA's memory holds.
inline MmaOperand operand_of(const MmaCall& call, bool is_a) {
  const MmaDescriptor& f = call.fields;
  MmaOperand operand;
  operand.major = is_a ? f.a_major : f.b_major;
  operand.rows = is_a ? rows_per_cta(call.shape) : b_columns_per_cta(call.shape);
  operand.k = f.k;
  operand.container_bits = container_bits(call.form->mode);
  operand.format = is_a ? f.a : f.b;
  return operand;
}

/// Scales of a row for one instruction.
inline int scales_per_row(const MmaCall& call) {
  return call.form->mode.scale_block == 0 ? 0 : call.fields.k / call.form->mode.scale_block;
}

/// The lane of D's row (in its CTA) for the columns of a part.
inline std::uint32_t lane_of_row(const MmaCall& call, int row, int part) {
  const int width = call.shape.n / column_parts(call.shape);
  return call.d.lane + static_cast<std::uint32_t>(place_of_d(call.shape, row, part * width).lane);
}

/// nullptr of other instructions.
const MmaForm* mma_form_of(const Insn& insn) noexcept;

/// Stops the thread.
[[noreturn]] void refuse_mma(const MmaCall& call, const std::string& problem);

/// For the observers.
struct MmaFootprint {
  std::vector<TensorRegion> regions;
  std::vector<AsyncRange> shared;
  std::vector<SharedOperand> operands;
};
MmaFootprint footprint_of(const MmaCall& call);

/// Reads all operands and writes D.
void perform_mma(const MmaCall& call);

}  // namespace tilewright::sim
