// Where a key is in values that come as columns (Fp8Values::kColumns, fp8_operands.h).
#pragma once

#include <cstdint>

namespace tilewright::kernels {

/// Key of a group of 16 that its column `slot` of kColumns holds.
constexpr int value_slot_key(int slot) {
  return slot / 2 % 2 * 8 + slot / 4 * 2 + slot % 2;
}
constexpr std::int64_t value_column(std::int64_t first_token, std::int64_t sequence) {
  return (first_token + 15) / 16 * 16 + 16 * sequence;
}
constexpr std::int64_t value_columns(std::int64_t tokens, std::int64_t sequences) {
  return (tokens + 15) / 16 * 16 + 16 * (sequences + 1);
}

}  // namespace tilewright::kernels
