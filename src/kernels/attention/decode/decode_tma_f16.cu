// targets: sm_90a
//
// Flash decode over caches of f16 with keys by TMA: see decode_tma_bf16.cu.
#include "kernels/attention/decode/boxes.h"
#include "kernels/attention/decode/kernel.h"

namespace tilewright::kernels {
TILEWRIGHT_DECODE_TMA(f16, kF16, 64, 16)
TILEWRIGHT_DECODE_TMA(f16, kF16, 128, 16)
TILEWRIGHT_DECODE_TMA(f16, kF16, 256, 16)
}  // namespace tilewright::kernels
