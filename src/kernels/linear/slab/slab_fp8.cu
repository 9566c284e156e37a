// targets: sm_90a
//
// The slab kernel: one to eight tokens by FP8 or bf16 weights, where a layer's time is mostly that
// of getting in and out. Every warp has its part of K of some rows and a ring of stages of its own,
// which it fills by bulk copies: no warp that feeds others, no cluster, and two barriers of the CTA
// in all, before the first product and before the sums of the parts are added.
//
//   each warp | (scales) weights 0 1 2 | kernel before ends | tokens | wait, multiply, load next ..
//   CTA       |                                              barrier          barrier | add, store
//
// What an operator before would do to the tokens, a norm or the inverse rotation, is done where
// they are written to shared memory anyway. linear_slab_pair has two weights of the same tokens,
// each in CTAs of its own.
//
// Limit: memory, and 3 us of launch, tokens, sums and end. H100 (3.35 TB/s), one token, us, beside
// the bandwidth kernel: 4096 x 4096 8.5 / 11.5, 24576 x 1024 11.1 / 13.0, 4096 x 8192 14.1 / 16.0;
// docs/notes/2026-11-26-few-rows.md has what was tried.
#include "kernels/linear/slab/kernel.h"

namespace tilewright::kernels {

TILEWRIGHT_LINEAR_SLAB(fp8, kFp8, 1, kSlabRegisters)
TILEWRIGHT_LINEAR_SLAB(fp8, kFp8, 2, kSlabRegisters)
TILEWRIGHT_LINEAR_SLAB(fp8, kFp8, 4, kSlabMostRegisters)

TILEWRIGHT_KERNEL(linear_slab_pair, SlabPairParams, __maxnreg__(kSlabRegisters),
                  tile::linear_slab_pair)

}  // namespace tilewright::kernels
