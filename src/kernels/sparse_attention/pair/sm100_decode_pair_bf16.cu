// targets: sm_100f
//
// Sparse attention by pairs of CTAs over rows of bf16, of 512 or 576 numbers: sm100_decode_pair.cu
// says how it goes. Keys go straight to their places, by copies of 16 bytes, two blocks ahead.
#include "kernels/sparse_attention/pair/kernel.h"
#include "kernels/sparse_attention/pair/list_entries.h"
#include "kernels/sparse_attention/pair/lists.h"
#include "kernels/sparse_attention/pair/whole_keys.h"

namespace tilewright::kernels {
namespace {

template <KvFormat Format, int Half>
using Bf16Keys =
    tile::PairWholeKeys<tile::PairForm<kv_dims(Format)>, tile::SparsePairEntries<Format>, Half>;
template <int Half>
using Keys512 = Bf16Keys<KvFormat::kBf16, Half>;
template <int Half>
using Keys576 = Bf16Keys<KvFormat::kBf16Mla, Half>;

using Rows512 = tile::OverLists<KvFormat::kBf16, Keys512>;
using Rows576 = tile::OverLists<KvFormat::kBf16Mla, Keys576>;

}  // namespace

TILEWRIGHT_ATTENTION_IN_PAIRS(sparse_decode_pair_bf16, Rows512)
TILEWRIGHT_ATTENTION_IN_PAIRS(sparse_decode_pair_bf16_mla, Rows576)

}  // namespace tilewright::kernels
