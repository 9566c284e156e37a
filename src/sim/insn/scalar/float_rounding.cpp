#include "sim/insn/scalar/float_rounding.h"

#include <xmmintrin.h>

namespace tilewright::sim {

void set_float_rounding(FloatRounding rounding) noexcept {
  constexpr unsigned kModes[] = {_MM_ROUND_NEAREST, _MM_ROUND_TOWARD_ZERO, _MM_ROUND_DOWN,
                                 _MM_ROUND_UP};
  constexpr unsigned kMask = _MM_ROUND_MASK;
  _mm_setcsr((_mm_getcsr() & ~kMask) | kModes[static_cast<int>(rounding)]);
}

}  // namespace tilewright::sim
