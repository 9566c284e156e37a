// targets: sm_90a
//
// Flash decode of all head dimensions and chunks over caches of e4m3: see decode_any_bf16.cu.
#include "kernels/attention/decode/kernel.h"
#include "kernels/attention/decode/loader.h"

namespace tilewright::kernels {
TILEWRIGHT_DECODE_ANY(e4m3, kE4m3, 64, 16)
TILEWRIGHT_DECODE_ANY(e4m3, kE4m3, 96, 16)
TILEWRIGHT_DECODE_ANY(e4m3, kE4m3, 128, 16)
TILEWRIGHT_DECODE_ANY(e4m3, kE4m3, 192, 16)
TILEWRIGHT_DECODE_ANY(e4m3, kE4m3, 256, 16)
TILEWRIGHT_DECODE_ANY(e4m3, kE4m3, 64, 64)
TILEWRIGHT_DECODE_ANY(e4m3, kE4m3, 96, 64)
TILEWRIGHT_DECODE_ANY(e4m3, kE4m3, 128, 64)
TILEWRIGHT_DECODE_ANY(e4m3, kE4m3, 192, 64)
TILEWRIGHT_DECODE_ANY(e4m3, kE4m3, 256, 64)
}  // namespace tilewright::kernels
