// cvt on rows.
#pragma once

#include "sim/compile/lowering.h"
#include "sim/insn/scalar/convert_value.h"
#include "sim/state/insn.h"

namespace tilewright::sim {

/// One value per lane, any Conversion (Insn::extra): op: d, a.
Step run_conversion(Warp& warp, const Insn& insn, std::uint32_t active);

/// Elements packed into a register: from several f32 registers (the first is the highest element)
/// or from a register that holds as many.
struct PackedConversion {
  Conversion element;
  int num_elements = 2;
  int to_slot_bits = 16;    ///< an element starts every so many bits
  int from_slot_bits = 0;   ///< 0: each source register holds one element
  bool has_random = false;  ///< the last operand holds random bits
  int random_bits = 0;      ///< how many of them an element takes
  int random_slot_bits = 0;
  int to_bits = 32;  ///< of the destination register
  int from_bits = 32;
};

/// Insn::extra: PackedConversion; op: d, sources, random bits.
Step run_packed_conversion(Warp& warp, const Insn& insn, std::uint32_t active);

/// A vectorised function for a conversion, nullptr if there is none.
ExecFn fast_conversion(const Conversion& conversion);
ExecFn fast_packed_conversion(const PackedConversion& conversion);

/// Integer to integer without .sat, from a register to one of any width.
ExecFn integer_conversion(Type to, Type from);

/// cvt.pack
void lower_cvt_pack(Lowering& l);

/// A 64-bit integer to f64, rounded.
ExecFn long_to_double(Rounding rounding, bool is_signed_type);

}  // namespace tilewright::sim
