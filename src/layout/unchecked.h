// CuTe's layout arithmetic with its checks left out.
//
// pycute, which makes reference data for layout algebra, divides and rounds down where a law is
// broken and returns what comes out: complement(3:3, ...) o 5:1 keeps 3 of the 5 elements. The
// functions in algebra.h refuse such operands. To compare with data that contains them, this file
// repeats the unchecked arithmetic; nothing else may use it.
#pragma once

#include "layout/layout.h"

#include <cstdint>

namespace tilewright {

Layout unchecked_composition(const Layout& a, const Layout& b);
Layout unchecked_complement(const Layout& a, std::int64_t bound);
Layout unchecked_logical_divide(const Layout& a, const Layout& tile);
Layout unchecked_logical_product(const Layout& a, const Layout& tile);

}  // namespace tilewright
