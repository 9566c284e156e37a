// Layouts as text: ((4,8,4),(2,2,8)):((128,1,16),(64,8,512)), Sw<3,4,3> o 0 o (8,64):(64,1),
// <4:1,_>.
#pragma once

#include "layout/swizzle.h"

#include <string>

namespace tilewright {

std::string to_string(const IntTuple& tuple);
std::string to_string(const Layout& layout);
std::string to_string(const Swizzle& swizzle);
/// Plain layouts print plainly; an identity swizzle with an offset prints as `8 o (4):(1)`.
std::string to_string(const ComposedLayout& layout);
std::string to_string(const Tiler& tiler);

}  // namespace tilewright
