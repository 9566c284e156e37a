// targets: sm_90a
//
// As sm90_latent_v512_qv.cu, over rows of 576 that lists name: 64 heads of a query a CTA. Four
// warps copy rows by 16 bytes, a quarter of each block; 128 heads are two CTAs, which find each
// other's rows in the second cache.
//
// Limit, of a block: as there, but for the second cache: 73.7 KB a CTA, 34 bytes a cycle at the
// tensor cores' 2176. What was measured: docs/notes/2026-11-27-mla-forms.md.
#include "kernels/sparse_attention/latent/kernel.h"
#include "kernels/sparse_attention/latent/list_loader.h"

namespace tilewright::kernels {

TILEWRIGHT_KERNEL(latent_lists_bf16_v512_qv, LatentParams,
                  __launch_bounds__(LatentTile::kThreads, 1),
                  latent_attention<tile::LatentForm<tile::Bf16, 512, true, 1, true>>)

}  // namespace tilewright::kernels
