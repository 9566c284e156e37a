// What a launch of flash decode is limited to, and what it leaves in its workspace.
#pragma once

#include "kernels/attention/decode/decode.h"

#include <cstdint>

namespace tilewright::kernels {

inline constexpr int kDecodeMaxQueries = 16;

/// Slots of partial results that may be used.
constexpr std::int64_t decode_partial_slots(std::int64_t tiles, std::int64_t splits,
                                            std::int64_t groups) {
  return splits > 0 ? (splits > 1 ? tiles * splits : 0) : 2 * groups;
}

}  // namespace tilewright::kernels
