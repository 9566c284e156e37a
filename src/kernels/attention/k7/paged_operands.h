// Arguments of attention over caches of e4m3 in pages.
#pragma once

#include "base/fast_divisor.h"
#include "kernels/attention/forward/pages.h"
#include "kernels/attention/k7/fp8_operands.h"

namespace tilewright::kernels {

/// AttentionPagedParams for caches of e4m3: maps as AttentionFp8Params has them, values in rows; of
/// pages and groups what AttentionPagedParams says. Scales depend on no block. With queries of
/// 16 bits the maps of keys and values and the scale of queries are not read, but k, v and their
/// strides.
struct AttentionPagedFp8Params : AttentionPagedParams, Fp8Numbers {
  FastDivisor page_divisor;  ///< by pages.page_size
};

}  // namespace tilewright::kernels
