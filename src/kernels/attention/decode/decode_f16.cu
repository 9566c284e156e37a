// targets: sm_90a
//
// Flash decode over caches of f16: decode_bf16.cu says what all of them do.
#include "kernels/attention/decode/kernel.h"
#include "kernels/attention/decode/loader.h"

namespace tilewright::kernels {
TILEWRIGHT_DECODE(f16, kF16, 64, 16)
TILEWRIGHT_DECODE(f16, kF16, 128, 16)
TILEWRIGHT_DECODE(f16, kF16, 256, 16)
TILEWRIGHT_DECODE(f16, kF16, 64, 64)
TILEWRIGHT_DECODE(f16, kF16, 128, 64)
TILEWRIGHT_DECODE(f16, kF16, 256, 64)
}  // namespace tilewright::kernels
