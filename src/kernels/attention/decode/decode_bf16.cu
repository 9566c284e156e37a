// targets: sm_90a
//
// Flash decode: 1 to 16 queries a sequence against a long cache. Rows of a tile are the (query,
// head) pairs of a KV head, 16 or 64 of them; keys are split over CTAs and, in a CTA, over teams of
// warps. Beside the ladder: no warp is specialised. A team copies its own keys and values into its
// own ring, 16 bytes a lane (cp.async), and multiplies them (mma.sync m16n8k16, which takes 16 rows
// where wgmma takes 64): no barrier between teams until a tile ends, and pages of any size cost
// what a contiguous cache costs.
//
//   team 0   | wait, copy 3 | scores 0, weights, values | wait, copy 4 | scores 1 ...   | merge
//   team 1   |  wait, copy 3 | scores 0, weights, values | wait, copy 4 | scores 1 ...  | teams,
//   ...      (each at its own pace; copies of the next tile begin in this one)           | store
//
// Each CTA computes its own work from the lengths (agenda.h). Until that is done no key is on its
// way, so the code is short and stands in one place; a speculative prologue runs it before the
// preceding kernels have ended and prefetches the first keys, and is checked when they have
// (ahead.h). Of a tile that several CTAs share, the last one to finish merges all parts (parts.h).
// Where tiles are few or short, CTAs work in clusters: each has a part of a segment's keys, and
// merges a part of its dimensions, out of the shared memory of all.
//
// Limit: memory. A key and value of 128 bf16 are 512 bytes: at 4.2 TB/s and 132 SMs 27 cycles (at
// 1.7 GHz), in which mma.sync multiplies some 100 rows. In flight: 4.2 TB/s times 800 ns are 25 KB
// per SM; the ring has 128 KB on its way. Below 100 MB: the latency until the first keys are on
// their way, and until the last parts are merged.
// Measured (H200, CUDA graph, cold caches, 32 heads, 8 of keys, d = 128, a query): bf16, 32
// sequences of 8192 keys 4.48 TB/s, 8 of 4096 3.65; e4m3 4.24 and 2.86; one sequence of 4096 keys
// 10.3 us in bf16 and 9.7 in e4m3, of 256 keys 5.1. docs/notes/2026-11-22-attention-decode.md has
// the rest.
// Sources: Flash-Decoding (splits and their combination), FlashAttention-3 (packed rows).
#include "kernels/attention/decode/kernel.h"
#include "kernels/attention/decode/loader.h"

namespace tilewright::kernels {
TILEWRIGHT_DECODE(bf16, kBf16, 64, 16)
TILEWRIGHT_DECODE(bf16, kBf16, 128, 16)
TILEWRIGHT_DECODE(bf16, kBf16, 256, 16)
TILEWRIGHT_DECODE(bf16, kBf16, 64, 64)
TILEWRIGHT_DECODE(bf16, kBf16, 128, 64)
TILEWRIGHT_DECODE(bf16, kBf16, 256, 64)
}  // namespace tilewright::kernels
