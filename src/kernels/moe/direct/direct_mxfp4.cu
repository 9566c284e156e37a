// targets: sm_90a sm_100f
//
// The direct kernels of Mixture-of-Experts layers: one to eight tokens, where latency costs as much
// as bytes. A layer is one launch, and the weights of all of it are one stream of bulk copies that
// never waits for a result: those of down are on their way while gate and up are multiplied, and
// while CTAs wait for each other.
//
//   weights   | shared gate, up | gate, up of routed experts | down of the shared, of the routed |
//   one warp  | route, group | shared ..
//   the rest  | shared | routed | h | grid barrier | shared | routed | sum, out
//
// A CTA a SM has an even share of the rows of each. Its 16 warps have a ring of stages each, which
// a lane of the warp fills as the warp empties it: no producer, no barrier but that of the stage.
// Warps share the K of a unit, up to four bricks of 16 rows; tokens go from memory to registers, a
// block ahead. Bricks are decoded in registers, exactly, and multiplied by mma.m16n8k16 with the
// eight tokens that an expert has at most. Sums of the warps meet in shared memory: no atomics, the
// same bits every time. A CTA of down has its rows of all experts, and so adds up what a token's
// experts make, in the order of its slots.
//
// There is no permutation: every CTA routes for itself, in shared memory (groups.h), and reads
// tokens by their numbers. A shared expert of FP8 weights is done beside the routed ones
// (Moe::run_with_shared). Its gate and up come first: they are known before it is known who the
// routed ones are, which one warp finds out meanwhile. Its down takes a part of the warps for
// itself, where the plan finds that shorter than one behind the other. Its sums are finished with
// the first ones of the routed experts, behind one barrier.
//
// Lower bounds. Memory: V4-Flash with inter 1024 (half of it), one token: 6 experts of 4.46 MB gate
// and up and 2.23 down, and 12.6 MB of the shared expert, 52.7 MB: 12.3 us at 4.3 TB/s.
// Instructions: 78 a brick of MXFP4 and warp in a unit of four, 64 of them to decode it, and as
// many again where a unit is short; 8 tokens issue 54 % of what an H100 could.
//
// Measured, tried and not kept: docs/notes/2026-11-26-moe-few-tokens.md.
#include "kernels/moe/direct/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_MOE_DIRECT(mxfp4_braided, kMxfp4, kE4m3)

}  // namespace tilewright::kernels
