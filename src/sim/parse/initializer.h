// What stands after the = of a variable.
#pragma once

#include "sim/parse/context.h"

#include <vector>

namespace tilewright::sim {

/// The extents of an array from the outermost to the innermost, with the components of a vector
/// type last. The first is 0 if it is to be taken from the initialiser.
struct InitializerShape {
  std::vector<std::uint64_t> extents;
  std::uint32_t value_bytes = 4;
};

/// Takes an initialiser and fills variable.initial, .relocations and, if the first extent is 0,
/// .size_bytes. The variable will stand at `variable_idx` of the function that is read, or of the
/// module.
void parse_initializer(ParseContext& context, const InitializerShape& shape, Variable& variable,
                       std::uint32_t variable_idx);

}  // namespace tilewright::sim
