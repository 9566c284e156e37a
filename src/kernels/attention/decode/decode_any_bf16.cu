// targets: sm_90a
//
// Flash decode of head dimensions that are no power of two, and of keys that are seen in chunks:
// decode_bf16.cu says what all of them do. An entry multiplies 64, 96, 128, 192 or 256 elements of
// rows that may have fewer. Only what exists is read: a copy of 16 bytes takes its size, and what
// it leaves out becomes zeros. The ring keeps rows of a power of two bytes.
//
// Limit: memory, as there. A ring of wider rows has less on its way, 80 KB an SM at head_dim 80,
// where 4.2 TB/s times 800 ns are 25.
#include "kernels/attention/decode/kernel.h"
#include "kernels/attention/decode/loader.h"

namespace tilewright::kernels {
TILEWRIGHT_DECODE_ANY(bf16, kBf16, 64, 16)
TILEWRIGHT_DECODE_ANY(bf16, kBf16, 96, 16)
TILEWRIGHT_DECODE_ANY(bf16, kBf16, 128, 16)
TILEWRIGHT_DECODE_ANY(bf16, kBf16, 192, 16)
TILEWRIGHT_DECODE_ANY(bf16, kBf16, 256, 16)
TILEWRIGHT_DECODE_ANY(bf16, kBf16, 64, 64)
TILEWRIGHT_DECODE_ANY(bf16, kBf16, 96, 64)
TILEWRIGHT_DECODE_ANY(bf16, kBf16, 128, 64)
TILEWRIGHT_DECODE_ANY(bf16, kBf16, 192, 64)
TILEWRIGHT_DECODE_ANY(bf16, kBf16, 256, 64)
}  // namespace tilewright::kernels
