// targets: sm_100f
#include "kernels/attention_sm100/decode/kernel.h"

TILEWRIGHT_TENSOR_DECODE_ENTRY(e4m3, true, 16)
TILEWRIGHT_TENSOR_DECODE_ENTRY(e4m3, true, 32)
