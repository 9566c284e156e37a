// targets: sm_100f
//
// Sparse attention by pairs of CTAs over DeepSeek-V3's FP8 records of 656 bytes:
// sm100_decode_pair.cu says how it goes. Scales of 128 codes are fp32 (placed_scale.h).
#include "kernels/sparse_attention/pair/kernel.h"
#include "kernels/sparse_attention/pair/lists.h"
#include "kernels/sparse_attention/pair/record_keys.h"

namespace tilewright::kernels {
namespace {

using Records = tile::OverLists<KvFormat::kFp8Mla, tile::SparsePairRecordKeys>;

}  // namespace

TILEWRIGHT_ATTENTION_IN_PAIRS(sparse_decode_pair_fp8_mla, Records)

}  // namespace tilewright::kernels
