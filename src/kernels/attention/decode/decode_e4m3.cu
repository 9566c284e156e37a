// targets: sm_90a
//
// Flash decode over caches of e4m3: decode_bf16.cu says what all of them do. Codes become f16,
// which holds every one of them; q becomes f16 times a power of two per row. Nothing is quantised
// but what came quantised.
#include "kernels/attention/decode/kernel.h"
#include "kernels/attention/decode/loader.h"

namespace tilewright::kernels {
TILEWRIGHT_DECODE(e4m3, kE4m3, 64, 16)
TILEWRIGHT_DECODE(e4m3, kE4m3, 128, 16)
TILEWRIGHT_DECODE(e4m3, kE4m3, 256, 16)
TILEWRIGHT_DECODE(e4m3, kE4m3, 64, 64)
TILEWRIGHT_DECODE(e4m3, kE4m3, 128, 64)
TILEWRIGHT_DECODE(e4m3, kE4m3, 256, 64)
}  // namespace tilewright::kernels
