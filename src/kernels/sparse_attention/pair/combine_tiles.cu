// targets: sm_100f
//
// sparse_combine for tiles of queries: a slot of partial results has the heads of one query behind
// those of the other.
//
// Limit: as sparse_combine.
#include "kernels/sparse_attention/combine.h"
#include "kernels/sparse_attention/pair/combine_tiles.h"
#include "ptx/grid_dependency.h"

namespace tilewright::kernels {
namespace {

// A query of a tile as one whose heads begin at `query` times the number of heads.
__device__ SparseDecodeParams of_query(const SparsePairParams& pair, std::int32_t query) {
  SparseDecodeParams p = pair.decode;
  const std::int32_t first = query * p.heads;
  p.out += query * pair.out_step - first * p.out_strides.head;
  if (p.lse != nullptr) p.lse += query * pair.lse_step - first * p.lse_strides.head;
  if (p.sink != nullptr) p.sink -= first;
  p.heads *= 2 * pair.queries_of_cta;
  return p;
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kSparseCombineThreads)
    sparse_combine_tiles(
        const __grid_constant__ tilewright::kernels::SparseTileCombineParams params) {
  using namespace tilewright::kernels;
  tilewright::ptx::griddepcontrol_wait();
  tilewright::ptx::griddepcontrol_launch_dependents();
  const SparseDecodeParams& decode = params.pair.decode;
  const std::int32_t queries = 2 * params.pair.queries_of_cta;
  const SparseMerge merge = params.merges[blockIdx.x];
  const auto row = static_cast<std::int32_t>(blockIdx.y * kSparseCombineHeads + threadIdx.x / 32);
  if (merge.query < 0 || row >= queries * decode.heads) return;
  const std::int32_t query = row / decode.heads;
  if (merge.query % decode.q_len * queries + query >= params.pair.queries) return;
  combine<2>(of_query(params.pair, query), merge, row, static_cast<std::int32_t>(threadIdx.x % 32));
}
