// targets: sm_90a
//
// Flash decode over caches of e4m3 with keys by TMA: see decode_tma_bf16.cu.
#include "kernels/attention/decode/boxes.h"
#include "kernels/attention/decode/kernel.h"

namespace tilewright::kernels {
TILEWRIGHT_DECODE_TMA(e4m3, kE4m3, 64, 16)
TILEWRIGHT_DECODE_TMA(e4m3, kE4m3, 128, 16)
TILEWRIGHT_DECODE_TMA(e4m3, kE4m3, 256, 16)
}  // namespace tilewright::kernels
