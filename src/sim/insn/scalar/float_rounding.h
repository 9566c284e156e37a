// Directed rounding: the host's arithmetic runs under the rounding mode that is asked for.
#pragma once

#include "sim/state/insn.h"

#include <cstdint>

namespace tilewright::sim {

/// In the order of take_rounding().
enum class FloatRounding : std::uint8_t { kNearestEven, kTowardZero, kDown, kUp };

/// Sets the mode of the calling thread. Not inline: arithmetic cannot move across a call that might
/// read or write the rows.
void set_float_rounding(FloatRounding rounding) noexcept;

class RoundingScope {
 public:
  explicit RoundingScope(FloatRounding rounding) noexcept { set_float_rounding(rounding); }
  ~RoundingScope() { set_float_rounding(FloatRounding::kNearestEven); }
  RoundingScope(const RoundingScope&) = delete;
  RoundingScope& operator=(const RoundingScope&) = delete;
};

/// kExec under the mode in Insn::small.
template <ExecFn kExec>
Step rounded(Warp& warp, const Insn& insn, std::uint32_t active) {
  const RoundingScope scope(static_cast<FloatRounding>(insn.small));
  return kExec(warp, insn, active);
}

}  // namespace tilewright::sim
