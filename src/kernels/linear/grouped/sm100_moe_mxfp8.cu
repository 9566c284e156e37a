// targets: sm_100f
//
// MXFP8 rows of experts by e4m3 weights with a power of two for 32 of a row (kind::mxf8f6f4); h in
// MXFP8. As sm100_moe_nvfp4.cu.
#include "kernels/linear/grouped/kernel.h"
#include "kernels/linear/grouped/mxfp8_h.h"

namespace tilewright::kernels {

TILEWRIGHT_MOE_GROUPED_ENTRIES(sm100_moe_mxfp8, kMxfp8, Mxfp8H)

}  // namespace tilewright::kernels
