// targets: sm_90a
//
// Flash decode with keys by TMA, 16 of a page at once: decode_bf16.cu says what all of them do, and
// boxes.h how these load.
#include "kernels/attention/decode/boxes.h"
#include "kernels/attention/decode/kernel.h"

namespace tilewright::kernels {
TILEWRIGHT_DECODE_TMA(bf16, kBf16, 64, 16)
TILEWRIGHT_DECODE_TMA(bf16, kBf16, 128, 16)
TILEWRIGHT_DECODE_TMA(bf16, kBf16, 256, 16)
}  // namespace tilewright::kernels
