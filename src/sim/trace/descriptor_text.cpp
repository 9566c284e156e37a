// Descriptors of tcgen05.mma in words.
#include "sim/insn/tensor/tcgen05_mma.h"
#include "sim/trace/register_text.h"

#include <bit>

#include <fmt/format.h>

namespace tilewright::sim {

std::string descriptors_text(Warp& warp, const Insn& insn, std::uint32_t active) {
  const MmaForm* const form = mma_form_of(insn);
  if (form == nullptr || active == 0) return {};
  const int lane = std::countr_zero(active);
  const auto bits = warp.row<std::uint32_t>(form->descriptor)[lane];
  std::string out = fmt::format("    descriptors of lane {}\n      instruction {}\n", lane,
                                describe_mma_descriptor(bits, form->mode));
  for (const auto& [name, row] :
       {std::pair{"A", form->a_descriptor}, std::pair{"B", form->b_descriptor}}) {
    if (row == kNoRow) continue;
    out += fmt::format("      {} {}\n", name,
                       describe_shared_descriptor(warp.row<std::uint64_t>(row)[lane]));
  }
  return out;
}

}  // namespace tilewright::sim
