// Registers that the machine fills: their names.
#pragma once

#include "sim/parse/ast.h"

#include <optional>
#include <string_view>
#include <vector>

namespace tilewright::sim {

struct SpecialRegisterName {
  SpecialRegister which = SpecialRegister::kTid;
  bool has_components = false;         ///< .x .y .z
  std::optional<std::uint8_t> number;  ///< of %envreg7, %pm0, %reserved_smem_offset_1
};

/// Nothing if no special register has the name; with its %, without .x.
std::optional<SpecialRegisterName> find_special_register(std::string_view name) noexcept;

/// For suggestions.
std::vector<std::string_view> special_register_names();

}  // namespace tilewright::sim
