// Contract of stage E over caches of e4m3 in pages, for queries of 16 bits.
#pragma once

#include "kernels/attention/k7/paged_operands.h"
#include "kernels/attention_sm100/pages/stage_e_pages.h"

namespace tilewright::kernels {

// Entries attention_sm100_pages_{bf16,f16}_e4m3_{d64,d128,d192_v128}: AttentionPagedFp8Params with
// rows, grid and maps of q and out as stage_e_pages.h says. Those of keys and values are not read,
// but k, v and their strides, which are multiples of 16. Tiles and shared memory are those of stage
// E over pages.

}  // namespace tilewright::kernels
