// targets: sm_100f
//
// MXFP8 rows of experts by MXFP4 weights (kind::mxf8f6f4), which copies unpack on their way; h in
// MXFP8. As sm100_moe_nvfp4.cu.
#include "kernels/linear/grouped/kernel.h"
#include "kernels/linear/grouped/mxfp8_h.h"

namespace tilewright::kernels {

TILEWRIGHT_MOE_GROUPED_ENTRIES(sm100_moe_mxfp8_mxfp4, kMxfp8Mxfp4, Mxfp8H)

}  // namespace tilewright::kernels
