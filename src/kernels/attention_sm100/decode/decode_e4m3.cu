// targets: sm_100f
//
// Flash decode on Blackwell's tensor core over caches of e4m3: decode_16bit.cu says what all of
// them do. Codes of keys and values go into kind::f8f6f4 as they came. What goes with them has more
// bits than a code: queries and weights are sums of three codes (attend.h), three columns of an MMA
// in which 16 rows would else be 16 of at least 48 that cost the same.
#include "kernels/attention_sm100/decode/kernel.h"

TILEWRIGHT_TENSOR_DECODE_ENTRY(e4m3, true, 16)
TILEWRIGHT_TENSOR_DECODE_ENTRY(e4m3, true, 32)
