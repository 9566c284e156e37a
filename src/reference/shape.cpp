#include "reference/shape.h"

#include "base/error.h"

#include <fmt/ranges.h>

namespace tilewright::reference {

void require_at_least(std::string_view where, std::string_view name, int64_t value,
                      int64_t minimum) {
  require(value >= minimum, ErrorKind::kInvalidArgument,
          "{}: {} = {}; expected at least {}. Set {} to the size of the problem.", where, name,
          value, minimum, name);
}

void require_shape(std::string_view where, std::string_view array, size_t num_elems,
                   std::string_view shape, std::initializer_list<int64_t> dims) {
  int64_t needed = 1;
  bool is_valid = true;
  for (const int64_t dim : dims) {
    is_valid = is_valid && dim >= 0 && !__builtin_mul_overflow(needed, dim, &needed);
  }
  require(is_valid, ErrorKind::kInvalidArgument,
          "{}: {} cannot have the shape {} = [{}]; expected sizes >= 0 with a product below 2^63. "
          "Correct the sizes in the parameters.",
          where, array, shape, fmt::join(dims, ", "));
  require(num_elems == static_cast<size_t>(needed), ErrorKind::kInvalidArgument,
          "{}: {} has {} elements; expected {} for {} = [{}]. Pass the whole contiguous array, or "
          "correct the sizes in the parameters.",
          where, array, num_elems, needed, shape, fmt::join(dims, ", "));
}

}  // namespace tilewright::reference
