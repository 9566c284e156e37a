// targets: sm_90a
//
// Linear layers of some tens of tokens, up to 64 in a tile: the loop of sm90_wide_bf16.cu, cut so
// that every SM has a CTA.
//
// Weights are read once, so that memory decides: FP8 4096 x 8192 is 7.8 us of an H200 (4.3 TB/s).
// What stands in the way is what the CTAs read beside them. A CTA of R rows by K columns of the
// weight reads K columns of all tokens, 128 bytes for each R bytes of FP8: from L2 as many bytes as
// weights at 128 rows, half at 256. Tall tiles are few, so k has to be divided, by more CTAs than a
// cluster has that fills the GPU (of four 30 fit on an H200, of eight 15): parts go through memory.
//
//   warps     512 (640) threads multiply: 64 rows a warpgroup, all tokens; one warp loads
//   parts     sums of 256 rows by 64 tokens, 64 KB a CTA, to L2; a barrier of the grid; each of the
//             CTAs of a unit adds up eight of its tokens, in the order of the parts
//   scales    powers of two multiply weights where they are decoded, in place of the constant that
//             e4m3 needs there; others sums, by waiting for the products before
//
// One warp that loads rather than a warpgroup: all threads meet at the grid's barrier behind their
// roles, and so have as many registers as the launch gives to each (96, 80 with five warpgroups).
#include "kernels/linear/wide/spread.h"

namespace tilewright::kernels {

TILEWRIGHT_WIDE_SPREAD(fp8, kFp8, 4)
TILEWRIGHT_WIDE_SPREAD(fp8_w5, kFp8, 5)
TILEWRIGHT_WIDE_SPREAD(bf16, kBf16, 4)

}  // namespace tilewright::kernels
