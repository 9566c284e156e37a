// targets: sm_100f
//
// Sparse attention by pairs of CTAs over rows of e2m1 codes: sm100_decode_pair.cu says how it goes.
#include "kernels/sparse_attention/nvfp4_share.h"
#include "kernels/sparse_attention/pair/kernel.h"
#include "kernels/sparse_attention/pair/keys.h"
#include "kernels/sparse_attention/pair/lists.h"

namespace tilewright::kernels {
namespace {

template <int Half>
using Keys = tile::SparsePairKeys<KvFormat::kNvfp4, Half>;

using Nvfp4 = tile::OverLists<KvFormat::kNvfp4, Keys>;

}  // namespace

TILEWRIGHT_ATTENTION_IN_PAIRS(sparse_decode_pair_nvfp4, Nvfp4)

}  // namespace tilewright::kernels
