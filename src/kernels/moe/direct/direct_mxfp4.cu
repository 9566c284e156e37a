// targets: sm_90a sm_100f
//
// The direct kernels of Mixture-of-Experts layers: one to eight tokens, where a launch costs as
// much as its bytes. A layer is two launches instead of five or six:
//
//   gate_up   route, group slots by expert | bricks of gate and up, SwiGLU -> h of every slot
//   down      (route, group, first weights | gate_up ends) all experts of some rows -> y -> out
//
// There is no permutation: every CTA routes for itself, in shared memory (groups.h), and reads
// tokens by their numbers. A CTA of down has its rows of all experts, and so adds up what a token's
// experts make, in the order of its slots. The warps of a CTA share the K of a brick (16 rows by 64
// of K); each brings its own bricks through a ring of its own in shared memory, decodes them in
// registers, exactly, and multiplies them by mma.m16n8k16 with the eight tokens that an expert has
// at most. Sums of the warps meet in shared memory: no atomics, the same bits every time.
//
//   warp 0  | K 0..   of brick 0 | K 0..   of brick 1 | .. | barrier | sums of this round's bricks
//   warp 1  | K 512.. of brick 0 | ..                      |         | (the other buffer fills)
//
// The work of a shared expert stands beside that of routed ones: CTAs of their own, in the same
// launch, whose weights are under way before the router has ended.
//
// Lower bounds. Memory: V4-Flash with inter 1024 (half of it), one token: 6 experts of 4.46 MB gate
// and up and 2.23 down, and 12.6 MB of the shared expert, 52.7 MB: 12.3 us at 4.3 TB/s. Latency:
// routing 2 us, each launch about 2 us until its first weights are there and its last are summed.
//
// Loads go to shared memory because ptxas gives all loads of a loop that come from an iteration
// before one scoreboard: in registers they were waited for together, at 1.4 TB/s. Measured, tried
// and not kept: docs/notes/2026-11-26-moe-few-tokens.md.
#include "kernels/moe/direct/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_MOE_DIRECT(mxfp4, kMxfp4, kBf16)
TILEWRIGHT_MOE_DIRECT(mxfp4_braided, kMxfp4, kE4m3)

}  // namespace tilewright::kernels
