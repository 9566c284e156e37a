// Weights of the C interface as the library's.
#pragma once

#include "tilewright/linear.h"
#include "tilewright/tilewright.h"

namespace tilewright::c_api {

/// Errors   InvalidArgument; types and shapes are checked later, by those who prepare it
LinearWeightSource to_weight_source(const tw_linear_weight_source& source);

}  // namespace tilewright::c_api
