// What a load or store is: Insn::extra of both, which checkers read too.
#pragma once

#include "sim/event/access_form.h"
#include "sim/state/insn.h"

#include <array>
#include <cstdint>

namespace tilewright::sim {

inline constexpr int kMaxMoveElements = 8;

/// A load or store: Insn::extra.
struct MoveForm {
  AddressForm address;
  Access access;
  std::array<Row, kMaxMoveElements> rows{};
  std::array<std::uint8_t, kMaxMoveElements> row_bytes{};  ///< 0 behind the last element
  bool is_signed = false;
  bool is_direct = true;      ///< registers are as wide as the elements
  bool is_cross_cta = false;  ///< orders, and may be of memory that other CTAs see
  Step step = Step::kNext;
};

}  // namespace tilewright::sim
