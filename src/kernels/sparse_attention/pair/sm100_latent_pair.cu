// targets: sm_100f
//
// Attention over all keys of a sequence whose values of 512 make scores, beside keys of 64, on
// Blackwell: decoding of DeepSeek-V3. The kernel of sm100_decode_pair.cu with other rows and keys.
//
//   rows   (query, head) pairs of a KV head, 128 a tile, half of them in each CTA; a row sees the
//          keys up to its query's
//   keys   slots of pages (or of no pages), 64 after each other; zeros behind the last one and
//          where there is no page
//
//   keys     | 0 | 1 | 2 | 3 | 4 ...                      four stages
//   tensor       | S0 | S1 | O0 | S2 | O1 | S3 | O2 ...
//   rows              | 0  |  1     |  2     |  3 ...
//
// Each key is read once for the 128 rows of a tile, half of it by each CTA: 36.9 KB of a CTA for 64
// keys, 1341 cycles of HBM (27.5 bytes a cycle and SM), where the tensor core takes 1088 and shared
// memory 1160. So one query of up to 128 heads is bound by memory. Tiles of more queries take the
// same keys from L2.
//
// Limit: copies of 16 bytes, 4608 a block in two CTAs; tensor copies would save their instructions,
// but bring what lies behind a sequence's last key, which may be NaN.
// Not run on a B200.
#include "kernels/sparse_attention/pair/all_keys.h"
#include "kernels/sparse_attention/pair/kernel.h"
#include "kernels/sparse_attention/pair/sm100_latent_pair.h"
#include "kernels/sparse_attention/pair/whole_keys.h"

namespace tilewright::kernels {
namespace {

template <class Element>
struct OverAllKeys {
  using Form = tile::PairForm<kKvMlaDims, Element>;
  using Task = tile::PairAllKeys;
  template <int Half>
  using Keys = tile::PairWholeKeys<Form, tile::PairAllEntries, Half>;
};

}  // namespace

TILEWRIGHT_ATTENTION_IN_PAIRS(latent_tensor_pair_bf16_v512_qv, OverAllKeys<tile::Bf16>)
TILEWRIGHT_ATTENTION_IN_PAIRS(latent_tensor_pair_f16_v512_qv, OverAllKeys<tile::Fp16>)

}  // namespace tilewright::kernels
