// All instructions, in the order in which `tilewright sim isa` lists them.
#include "sim/insn/sections.h"

#include <array>

namespace tilewright::sim {

std::span<const InsnSection> insn_table() {
  static const std::array sections = {
      arithmetic_section(), carry_section(),   bits_section(),    compare_section(),
      move_section(),       convert_section(), address_section(), special_function_section(),
      load_store_section(), atomic_section(),  shuffle_section(), vote_section(),
      barrier_section(),    control_section(), hint_section(),
  };
  return sections;
}

}  // namespace tilewright::sim
