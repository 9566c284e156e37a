// targets: sm_100f
//
// Attention over all keys of a sequence whose values of 512 make scores, beside keys of 64, on
// Blackwell: decoding of DeepSeek-V3. The kernel of sm100_decode_pair.cu with other rows and keys.
// Also values of 256, and values that make no scores (keys of 64 alone do).
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
// Values of 256 take the tensor core's time of 512: the second CTA's half of each key is zeros,
// which it writes to shared memory and does not read. Where values make no scores, the tensor core
// has 576 cycles, 64 of them of scores.
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

template <class Element, int ValueDims, bool HasWideQueries>
struct OverAllKeys {
  using Form = tile::PairForm<kKvMlaDims, Element, ValueDims, HasWideQueries>;
  using Task = tile::PairAllKeys;
  template <int Half>
  using Keys = tile::PairWholeKeys<Form, tile::PairAllEntries, Half>;
};

}  // namespace

#define TILEWRIGHT_LATENT_IN_PAIRS(NAME, ELEMENT, DIMS, HAS_QV) \
  using Use_##NAME = OverAllKeys<tile::ELEMENT, DIMS, HAS_QV>;  \
  TILEWRIGHT_ATTENTION_IN_PAIRS(latent_tensor_pair_##NAME, Use_##NAME)

TILEWRIGHT_LATENT_IN_PAIRS(bf16_v512_qv, Bf16, 512, true)
TILEWRIGHT_LATENT_IN_PAIRS(f16_v512_qv, Fp16, 512, true)
TILEWRIGHT_LATENT_IN_PAIRS(bf16_v256_qv, Bf16, 256, true)
TILEWRIGHT_LATENT_IN_PAIRS(f16_v256_qv, Fp16, 256, true)
TILEWRIGHT_LATENT_IN_PAIRS(bf16_v512, Bf16, 512, false)
TILEWRIGHT_LATENT_IN_PAIRS(f16_v512, Fp16, 512, false)
TILEWRIGHT_LATENT_IN_PAIRS(bf16_v256, Bf16, 256, false)
TILEWRIGHT_LATENT_IN_PAIRS(f16_v256, Fp16, 256, false)

}  // namespace tilewright::kernels
