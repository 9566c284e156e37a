// targets: sm_90a
//
// Flash decode of all head dimensions and chunks over caches of f16: see decode_any_bf16.cu.
#include "kernels/attention/decode/kernel.h"
#include "kernels/attention/decode/loader.h"

namespace tilewright::kernels {
TILEWRIGHT_DECODE_ANY(f16, kF16, 64, 16)
TILEWRIGHT_DECODE_ANY(f16, kF16, 96, 16)
TILEWRIGHT_DECODE_ANY(f16, kF16, 128, 16)
TILEWRIGHT_DECODE_ANY(f16, kF16, 192, 16)
TILEWRIGHT_DECODE_ANY(f16, kF16, 256, 16)
TILEWRIGHT_DECODE_ANY(f16, kF16, 64, 64)
TILEWRIGHT_DECODE_ANY(f16, kF16, 96, 64)
TILEWRIGHT_DECODE_ANY(f16, kF16, 128, 64)
TILEWRIGHT_DECODE_ANY(f16, kF16, 192, 64)
TILEWRIGHT_DECODE_ANY(f16, kF16, 256, 64)
}  // namespace tilewright::kernels
