// targets: sm_100f
//
// sparse_combine for pairs of queries: a slot of partial results has the heads of the first and
// then those of the second.
//
// Limit: as sparse_combine.
#include "kernels/sparse_attention/combine.h"
#include "kernels/sparse_attention/pair/sm100_decode_pair.h"
#include "ptx/grid_dependency.h"

namespace tilewright::kernels {
namespace {

// A query of a pair as one whose heads begin at `token` times the number of heads.
__device__ SparseDecodeParams of_query(const SparsePairParams& pair, std::int32_t token) {
  SparseDecodeParams p = pair.decode;
  const std::int32_t first = token * p.heads;
  p.out += token * pair.out_step - first * p.out_strides.head;
  if (p.lse != nullptr) p.lse += token * pair.lse_step - first * p.lse_strides.head;
  if (p.sink != nullptr) p.sink -= first;
  p.heads *= 2;
  return p;
}

}  // namespace
}  // namespace tilewright::kernels

extern "C" __global__ void __launch_bounds__(tilewright::kernels::kSparseCombineThreads)
    sparse_combine_pairs(
        const __grid_constant__ tilewright::kernels::SparsePairCombineParams params) {
  using namespace tilewright::kernels;
  tilewright::ptx::griddepcontrol_wait();
  tilewright::ptx::griddepcontrol_launch_dependents();
  const SparseDecodeParams& decode = params.pair.decode;
  const SparseMerge merge = params.merges[blockIdx.x];
  const auto row = static_cast<std::int32_t>(blockIdx.y * kSparseCombineHeads + threadIdx.x / 32);
  if (merge.query < 0 || row >= 2 * decode.heads) return;
  const std::int32_t token = row < decode.heads ? 0 : 1;
  if (merge.query % decode.q_len * 2 + token >= params.pair.queries) return;
  combine(of_query(params.pair, token), merge, row, static_cast<std::int32_t>(threadIdx.x % 32));
}
