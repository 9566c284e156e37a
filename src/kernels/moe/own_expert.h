// From the experts of all ranks to those of one.
#pragma once

#include "kernels/moe/route.h"

#include <cstdint>

namespace tilewright::kernels {

/// id - first if that is one of `own` experts; -1 for the other experts of `all`, and for an id of
/// -1; kMoeNoExpert for what is no expert at all.
__device__ inline std::int32_t own_expert(std::int32_t id, std::int32_t first, std::int32_t own,
                                          std::int32_t all) {
  const std::int32_t number = id - first;
  const bool is_own = number >= 0 && number < own;
  const bool is_known = id >= -1 && id < all;
  return is_own ? number : is_known ? -1 : kMoeNoExpert;
}

}  // namespace tilewright::kernels
