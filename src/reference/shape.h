// Size checks of the references: an array must hold exactly the elements that its shape promises.
#pragma once

#include "base/error.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace tilewright::reference {

inline constexpr ErrorKind kInvalid = ErrorKind::kInvalidArgument;

/// Throws InvalidArgument unless value >= minimum. `where` is the operator, `name` the argument.
void require_at_least(std::string_view where, std::string_view name, int64_t value,
                      int64_t minimum);

/// Throws InvalidArgument unless `num_elems` is the product of `dims`, which are the values of the
/// dimensions that `shape` spells out, e.g. "[rows, dim]" and {4, 64}.
void require_shape(std::string_view where, std::string_view array, size_t num_elems,
                   std::string_view shape, std::initializer_list<int64_t> dims);

}  // namespace tilewright::reference
